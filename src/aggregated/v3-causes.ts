import type { KubeObject } from "../api/object.ts";
import type { IPPool } from "../api/resources/ip-pool.ts";
import { storedPolicyName, tierOf } from "../api/resources/policy-names.ts";
import { fieldCause, invalidMessage, requiredMessage } from "../api/schema/schema-cause.ts";
import type { StatusCause } from "../api/status.ts";
import { REFUSED_FIELDS } from "../api/tables/refused-fields.ts";
import { ipPoolUpdateProblems } from "../api/validation/ip-pool.ts";
import type { Problem } from "../api/validation/problem.ts";
import { refusedProblem, STRUCTURE_PROBLEMS } from "../api/validation/structure.ts";
import { validateObject } from "../api/validation/validate.ts";
import { checkSchema } from "../apiserver/decode.ts";
import { metadataProblems } from "../apiserver/metadata.ts";
import { invalid } from "../apiserver/status-errors.ts";
import type { V3Kind } from "./v3-kinds.ts";

/** What a name made from a `generateName` will look like. */
const STAND_IN = "xxxxx";
const IMMUTABLE = "field is immutable";

/** Everything wrong with an object by itself, and with what it becomes of the old one, in the form Kubernetes answers with. */
export function causesOf(kind: V3Kind, object: KubeObject, old: KubeObject | undefined): StatusCause[] {
  const named = withName(object);
  const metadata = metadataProblems(named, kind.served, old);
  const malformed = metadata.some(({ field }) => field === "metadata.name");
  const rules = validateObject(named)
    .filter(({ code }) => !Object.hasOwn(STRUCTURE_PROBLEMS, code))
    .filter(({ path }) => !(malformed && path === "metadata.name"));
  return [
    ...metadata,
    ...checkSchema(kind.served, named),
    ...rules.map((problem) => causeOf(problem, named)),
    ...(malformed ? [] : tierCauses(kind, named, old)),
    ...(old ? immutableCauses(kind, named, old) : []),
  ];
}

/** Fields that this release does not carry are refused by name, also if the client accepts that others are dropped. */
export function refuseFields({ noun, served }: V3Kind): (paths: readonly string[], object: KubeObject) => void {
  const rows = REFUSED_FIELDS[noun] ?? {};
  return (paths, { metadata }) => {
    const causes = paths.flatMap((path) => {
      const row = rows[path];
      if (!row) return [];
      const { message, fix, code } = refusedProblem(path, row);
      return [fieldCause(path, `Forbidden: ${message} ${fix.replace(/\.$/, "")} [${code}]`)];
    });
    if (causes.length > 0) throw invalid(served, metadata?.name ?? "", causes);
  };
}

/** A problem of our own set: Kubernetes' words around our sentence, and the code that `vendorctl explain` knows. */
export function causeOf({ path, message, code }: Problem, object: KubeObject): StatusCause {
  const value = valueAt(object, path);
  const detail = `${message.replace(/\.$/, "")} [${code}]`;
  return fieldCause(path, value === undefined ? requiredMessage(detail) : invalidMessage(value, detail));
}

function withName(object: KubeObject): KubeObject {
  const { name, generateName } = object.metadata;
  if (name || !generateName) return object;
  return { ...object, metadata: { ...object.metadata, name: `${generateName}${STAND_IN}` } };
}

const LONGEST_NAME = 253;

/** A policy's tier is part of its name, so the two must say the same, and fit together into what a name may be. */
function tierCauses(kind: V3Kind, object: KubeObject, old: KubeObject | undefined): StatusCause[] {
  const tier = (object["spec"] as { tier?: unknown } | undefined)?.tier;
  if (!kind.tiered || typeof tier !== "string") return [];
  const { name } = object.metadata;
  if (storedPolicyName(name).length > LONGEST_NAME) {
    const detail = `may not be more than ${LONGEST_NAME} bytes together with its tier, ${tier}`;
    return [fieldCause("metadata.name", `Too long: ${detail}`)];
  }
  if (tier === tierOf(name) || (!old && name.includes("."))) return [];
  if (old) return [fieldCause("spec.tier", invalidMessage(tier, IMMUTABLE))];
  const right = `${tier}.${name}`;
  return [
    fieldCause("metadata.name", invalidMessage(name, `a policy of tier ${tier} is named ${storedPolicyName(right)}`)),
  ];
}

function immutableCauses(kind: V3Kind, object: KubeObject, old: KubeObject): StatusCause[] {
  if (kind.noun !== "ipPool" || !hasCidr(object) || !hasCidr(old)) return [];
  const problems = ipPoolUpdateProblems(old, object);
  return problems.map(({ path }) => fieldCause(path, invalidMessage(valueAt(object, path), IMMUTABLE)));
}

function hasCidr(object: KubeObject): object is KubeObject & IPPool {
  return typeof (object["spec"] as { cidr?: unknown } | undefined)?.cidr === "string";
}

/** What is at `spec.ingress[0].protocol`. */
function valueAt(object: unknown, path: string): unknown {
  let here = object;
  for (const step of path.match(/[^.[\]]+/g) ?? []) {
    if (typeof here !== "object" || here === null) return undefined;
    here = (here as Record<string, unknown>)[step];
  }
  return here;
}
