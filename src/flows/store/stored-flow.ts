import { FLOW_ADDRESSES, type FlowKey, type FlowRow } from "../../api/protocol/flow.ts";

/** Of one end of a flow in all of the history. */
const MOST_ADDRESSES = 64;

/** In bytes, roughly: the key as objects and as text, links, and a column of sums. */
const FLOW_BYTES = 900;
const BYTES_PER_CHARACTER = 3;
const ADDRESS_BYTES = 120;

interface SeenAddress {
  text: string;
  /** The begins of the first and of the last bucket with it. */
  first: number;
  last: number;
}

/** One key, for as long as the history has a row of it. Its number is its place in tables of sums, and another's afterwards. */
export class StoredFlow {
  readonly number: number;
  readonly key: FlowKey;
  readonly text: string;
  /** Versions of its first and of its last change. */
  readonly first: number;
  last = 0;
  /** Neighbours in the order of their last change. */
  older: StoredFlow | undefined;
  newer: StoredFlow | undefined;
  sources: SeenAddress[] = [];
  destinations: SeenAddress[] = [];
  /** The begin of the last bucket in which some addresses were left out; 0: none. */
  moreAt = 0;
  isGone = false;

  constructor(number: number, key: FlowKey, text: string, version: number) {
    this.number = number;
    this.key = key;
    this.text = text;
    this.first = version;
  }

  get memory(): number {
    return (
      FLOW_BYTES +
      this.text.length * BYTES_PER_CHARACTER +
      (this.sources.length + this.destinations.length) * ADDRESS_BYTES
    );
  }

  /** Returns the memory that this took, in bytes. */
  addAddresses({ sourceAddresses, destinationAddresses, more }: FlowRow, bucket: number): number {
    const before = this.sources.length + this.destinations.length;
    const all = [addTo(this.sources, sourceAddresses, bucket), addTo(this.destinations, destinationAddresses, bucket)];
    if (more || all.includes(false)) this.moreAt = Math.max(this.moreAt, bucket);
    return (this.sources.length + this.destinations.length - before) * ADDRESS_BYTES;
  }

  /** Returns the memory that this gave back. */
  forgetAddresses(before: number): number {
    const kept = this.sources.length + this.destinations.length;
    if (this.sources.some(({ last }) => last < before))
      this.sources = this.sources.filter(({ last }) => last >= before);
    if (this.destinations.some(({ last }) => last < before))
      this.destinations = this.destinations.filter(({ last }) => last >= before);
    return (kept - this.sources.length - this.destinations.length) * ADDRESS_BYTES;
  }
}

/** False: some were left out. */
function addTo(list: SeenAddress[], texts: readonly string[], bucket: number): boolean {
  let isWhole = true;
  for (const text of texts) {
    const known = list.find((address) => address.text === text);
    if (known) {
      known.first = Math.min(known.first, bucket);
      known.last = Math.max(known.last, bucket);
    } else if (list.length < MOST_ADDRESSES) list.push({ text, first: bucket, last: bucket });
    else isWhole = false;
  }
  return isWhole;
}

/** Addresses of flows that are shown as one. */
export interface ShownAddresses {
  sourceAddresses: string[];
  destinationAddresses: string[];
  more: boolean;
}

/** Everything that is known of a time, for a query to match. */
export function addressesIn(
  flows: readonly StoredFlow[],
  { since, until }: { since: number; until: number },
  { showsSource, showsDestination }: { showsSource: boolean; showsDestination: boolean },
): ShownAddresses {
  const within = (list: readonly SeenAddress[]) => list.filter(({ first, last }) => last >= since && first < until);
  const texts = (list: readonly SeenAddress[]) => within(list).map(({ text }) => text);
  const sourceAddresses = showsSource ? distinct(flows.map(({ sources }) => texts(sources))) : [];
  const destinationAddresses = showsDestination ? distinct(flows.map(({ destinations }) => texts(destinations))) : [];
  const wasCut = flows.some(({ moreAt }) => moreAt > 0 && moreAt >= since);
  // Of which end some were left out is not known: that the other end has many must not show.
  const isKnown =
    (showsSource && showsDestination) || sourceAddresses.length + destinationAddresses.length >= FLOW_ADDRESSES;
  return { sourceAddresses, destinationAddresses, more: wasCut && isKnown };
}

/** As many as an answer lists. */
export function capped({ sourceAddresses, destinationAddresses, more }: ShownAddresses): ShownAddresses {
  return {
    sourceAddresses: sourceAddresses.slice(0, FLOW_ADDRESSES),
    destinationAddresses: destinationAddresses.slice(0, FLOW_ADDRESSES),
    more: more || Math.max(sourceAddresses.length, destinationAddresses.length) > FLOW_ADDRESSES,
  };
}

function distinct(lists: readonly string[][]): string[] {
  return lists.length === 1 ? (lists[0] as string[]) : [...new Set(lists.flat())];
}
