import { createHash } from "node:crypto";
import type { IpSet } from "../../calc/model.ts";
import { isHost } from "./prefixes.ts";
import type { IpFamily } from "./ruleset.ts";

/** Short whatever it stands for, and the same on every node and after every restart. */
export function hashed(kind: string, ...parts: unknown[]): string {
  return `${kind}-${digestOf(JSON.stringify(parts), 16)}`;
}

export function digestOf(text: string, length: number): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

const setNames = new WeakMap<IpSet, Record<IpFamily, string>>();

/** A set of the model is one of ours per family; which kind is in the name, for the kind of a set cannot be changed. */
export function setName(set: IpSet, family: IpFamily): string {
  const names = setNames.get(set) ?? { 4: nameIn(set, 4), 6: nameIn(set, 6) };
  setNames.set(set, names);
  return names[family];
}

function nameIn({ id, members }: IpSet, family: IpFamily): string {
  const single = members.every((member) => familyOf(member) !== family || isHost(netOf(member)));
  return `${id}-${family}${single ? "" : "n"}`;
}

/** Of a prefix, or of a member with a port. */
export function familyOf(member: string): IpFamily {
  return netOf(member).includes(":") ? 6 : 4;
}

/** The prefix of a member, with or without a port. */
export function netOf(member: string): string {
  const comma = member.indexOf(",");
  return comma < 0 ? member : member.slice(0, comma);
}
