import { gunzipSync } from "node:zlib";
import type { CONFIGURATION } from "../../../gen/bpf/layout.gen.ts";
import packed from "../../../gen/bpf/objects.gen.json" with { type: "json" };

export type ObjectName = keyof typeof packed.objects;

/** Those at interfaces; the others are at sockets, and look through conntrack for the flow logs. */
export type TrafficObject = Exclude<ObjectName, "socket" | "sweep">;

/** Load-time constants of the programs, with their defaults. */
export type Configuration = typeof CONFIGURATION;

/** The compiled programs. */
export function objectBytes(name: ObjectName): Buffer {
  return gunzipSync(Buffer.from(packed.objects[name], "base64"));
}
