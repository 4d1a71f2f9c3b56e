import { GRPC_STATUS, GrpcError } from "../../kit/grpc/grpc-frames.ts";
import { decode, type Received } from "../../kit/grpc/protobuf.ts";
import { ACTION, type LIST_REQUEST, REPORTER, type STATISTICS_REQUEST, TEXT_MATCH } from "./messages.ts";
import type { PublicHit, PublicKey } from "./public-key.ts";

type Filter = Received<typeof LIST_REQUEST>["filter"];
type PolicyMatch = NonNullable<Received<typeof STATISTICS_REQUEST>["match"]>;
type Matcher = (text: string) => boolean;

/** Values of one criterion: each is compared with every flow. */
const MOST_VALUES = 100;
const EXACT = 0;
const FUZZY = 1;

export function invalid(message: string): GrpcError {
  return new GrpcError(GRPC_STATUS.invalidArgument, message);
}

/** Criteria are joined by "and", the values of one by "or". */
export function flowFilter(filter: Filter): (key: PublicKey) => boolean {
  if (!filter) return () => true;
  const all = [
    texts("source_names", filter.sourceNames, ({ sourceName }) => withShownName(sourceName)),
    texts("source_namespaces", filter.sourceNamespaces, ({ sourceNamespace }) => withShownNamespace(sourceNamespace)),
    texts("dest_names", filter.destNames, ({ destName }) => withShownName(destName)),
    texts("dest_namespaces", filter.destNamespaces, ({ destNamespace }) => withShownNamespace(destNamespace)),
    texts("protocols", filter.protocols, ({ protocol }) => [protocol]),
    oneOf(
      "dest_ports",
      filter.destPorts?.map(({ port = 0 }) => port),
      (key, ports) => ports.has(key.destPort),
    ),
    oneOf("actions", known("actions", filter.actions, ACTION), (key, actions) => actions.has(key.action)),
    oneOf("pending_actions", known("pending_actions", filter.pendingActions, ACTION), ({ pending }, actions) =>
      pending.some(({ action }) => actions.has(action)),
    ),
    reporterIs(filter.reporter ?? 0),
    policies(filter.policies),
  ].filter((criterion) => criterion !== undefined);
  return (key) => all.every((matches) => matches(key));
}

type Criterion = ((key: PublicKey) => boolean) | undefined;

function texts(
  name: string,
  matches: readonly { value?: string | undefined; type?: number | undefined }[] | undefined,
  of: (key: PublicKey) => readonly string[],
): Criterion {
  const matchers = limited(name, matches)?.map((match) => textMatcher(name, match));
  return matchers && ((key) => of(key).some((value) => matchers.some((matcher) => matcher(value))));
}

function oneOf<T>(
  name: string,
  values: readonly T[] | undefined,
  has: (key: PublicKey, values: ReadonlySet<T>) => boolean,
): Criterion {
  const set = limited(name, values) && new Set(values);
  return set && ((key) => has(key, set));
}

function reporterIs(reporter: number): Criterion {
  if (reporter === 0) return undefined;
  known("reporter", [reporter], REPORTER);
  return (key) => key.reporter === reporter;
}

function policies(matches: NonNullable<Filter>["policies"]): Criterion {
  const matchers = limited("policies", matches)?.map((match) => policyMatcher("policies", match));
  return (
    matchers &&
    (({ enforced, pending }) => {
      const isHit = (hit: PublicHit) => matchers.some((matcher) => matcher(hit));
      return enforced.some(isHit) || pending.some(isHit);
    })
  );
}

/** What is left out of a match, or empty, matches everything. */
export function policyMatcher(name: string, match: PolicyMatch): (hit: PublicHit) => boolean {
  const { kind = 0, action = 0 } = match;
  if (action !== 0) known(`${name}.action`, [action], ACTION);
  const [tier, namespace, policy] = [match.tier, match.namespace, match.name].map((given) => textMatch(name, given));
  return (hit) =>
    (kind === 0 || kind === hit.kind) &&
    (action === 0 || action === hit.action) &&
    (!tier || tier(hit.tier)) &&
    (!namespace || namespace(hit.namespace)) &&
    (!policy || policy(hit.name));
}

/** With what a match begins: the key of its first or second field. No name begins with one of them. */
const MATCH_BEGINS = [0x0a, 0x10];

/** A text as 3.31 sends it, or a match as 3.32 does. */
function textMatch(name: string, given: Buffer | undefined): Matcher | undefined {
  if (!given || given.length === 0) return undefined;
  if (!MATCH_BEGINS.includes(given[0] as number)) return textMatcher(name, { value: given.toString() });
  try {
    const match = decode(TEXT_MATCH, given);
    return match.value === "" ? undefined : textMatcher(name, match);
  } catch {
    throw invalid(`${name} has a match that cannot be read`);
  }
}

function textMatcher(
  name: string,
  { value = "", type = EXACT }: { value?: string | undefined; type?: number | undefined },
): Matcher {
  if (type === EXACT) return (text) => text === value;
  if (type !== FUZZY) throw invalid(`${name} has a match of type ${type}; there are 0, exact, and 1, fuzzy`);
  const part = value.toLowerCase();
  return (text) => text.toLowerCase().includes(part);
}

function known(
  name: string,
  values: readonly number[] | undefined,
  table: Readonly<Record<string, number>>,
): readonly number[] | undefined {
  const wrong = values?.find((value) => !Object.values(table).includes(value));
  if (wrong === undefined) return values;
  const names = Object.entries(table).map(([word, number]) => `${number} (${word})`);
  throw invalid(`${name} has ${wrong}, which is none of ${names.join(", ")}`);
}

/** Undefined: nothing is asked. */
function limited<T>(name: string, values: readonly T[] | undefined): readonly T[] | undefined {
  if (!values || values.length === 0) return undefined;
  if (values.length > MOST_VALUES) throw invalid(`${name} has ${values.length} values, more than ${MOST_VALUES}`);
  return values;
}

/** Pages of others show these in words, and filter by the words. */
function withShownName(name: string): readonly string[] {
  if (name === "pub") return [name, "PUBLIC NETWORK"];
  return name === "pvt" ? [name, "PRIVATE NETWORK"] : [name];
}

function withShownNamespace(namespace: string): readonly string[] {
  return namespace === "-" ? [namespace, "Global"] : [namespace];
}
