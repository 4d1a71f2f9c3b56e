import { FLOW_ADDRESSES, type FlowEnd } from "../../api/protocol/flow.ts";
import type { Sent } from "../../kit/grpc/protobuf.ts";
import type { StoredSum } from "../store/stored-sums.ts";
import { type FLOW_RESULT, REPORTER } from "./messages.ts";
import { type PublicKey, type PublicView, publicViews } from "./public-key.ts";

/** Sums under a public key: of all nodes that counted it. In and out are as the end that reports sees them. */
export interface PublicFlow {
  view: PublicView;
  since: number;
  until: number;
  packetsIn: number;
  packetsOut: number;
  bytesIn: number;
  bytesOut: number;
  started: number;
  completed: number;
  live: number;
  sums: StoredSum[];
}

/** Names that are listed of one flow. */
const MOST_LISTED = 8;

export function publicFlows(sums: Iterable<StoredSum>, matches: (key: PublicKey) => boolean): PublicFlow[] {
  const found = new Map<string, PublicFlow>();
  for (const sum of sums) {
    for (const view of publicViews(sum.key)) {
      if (!matches(view.key)) continue;
      let flow = found.get(view.name);
      if (!flow) {
        flow = { ...noSums(sum), view, sums: [] };
        found.set(view.name, flow);
      }
      add(flow, sum);
    }
  }
  return [...found.values()];
}

function noSums({ since, until }: StoredSum) {
  return {
    ...{ since, until, packetsIn: 0, packetsOut: 0, bytesIn: 0, bytesOut: 0 },
    ...{ started: 0, completed: 0, live: 0 },
  };
}

function add(flow: PublicFlow, sum: StoredSum): void {
  flow.sums.push(sum);
  flow.since = Math.min(flow.since, sum.since);
  flow.until = Math.max(flow.until, sum.until);
  const isSource = flow.view.key.reporter === REPORTER.Source;
  flow.packetsIn += isSource ? sum.replyPackets : sum.packets;
  flow.packetsOut += isSource ? sum.packets : sum.replyPackets;
  flow.bytesIn += isSource ? sum.replyBytes : sum.bytes;
  flow.bytesOut += isSource ? sum.bytes : sum.replyBytes;
  flow.started += sum.started;
  flow.completed += sum.ended;
  flow.live += sum.live;
}

export function sentResult({ view, since, until, sums, ...counts }: PublicFlow): Sent<typeof FLOW_RESULT> {
  const addresses = sums.map((sum) => sum.addresses());
  const sources = distinct(addresses.flatMap(({ sourceAddresses }) => sourceAddresses));
  const destinations = distinct(addresses.flatMap(({ destinationAddresses }) => destinationAddresses));
  const wasCut = addresses.some(({ more }) => more) || Math.max(sources.length, destinations.length) > FLOW_ADDRESSES;
  return {
    id: view.id,
    flow: {
      key: view.encoded,
      ...{ since: since / 1_000, until: until / 1_000, ...counts },
      sourceLabels: common(sums.map(({ key }) => labelsOf(key.from))),
      destLabels: common(sums.map(({ key }) => labelsOf(key.to))),
      dropReasons: listed(sums.flatMap(({ key }) => key.reason ?? [])),
      planes: listed(sums.map(({ key }) => key.dataplane)),
      nodes: listed(sums.map(({ key }) => key.node)),
      ...{ sourceAddresses: sources.slice(0, FLOW_ADDRESSES), destAddresses: destinations.slice(0, FLOW_ADDRESSES) },
      moreAddresses: wasCut,
    },
  };
}

const labels = new WeakMap<FlowEnd, string[]>();

function labelsOf(end: FlowEnd): string[] {
  let known = labels.get(end);
  if (!known) {
    known = Object.entries(end.labels ?? {}).map(([name, value]) => `${name}=${value}`);
    known.sort();
    labels.set(end, known);
  }
  return known;
}

/** What all of them have. */
function common([first = [], ...others]: string[][]): string[] {
  return first.filter((label) => others.every((labels) => labels === first || labels.includes(label)));
}

function listed(names: readonly string[]): string[] {
  return distinct(names).sort().slice(0, MOST_LISTED);
}

function distinct(names: readonly string[]): string[] {
  return names.length > 1 ? [...new Set(names)] : [...names];
}
