import { createHash } from "node:crypto";
import { calicoNames } from "../../../../api/names.ts";
import type { KubeObject } from "../../../../api/object.ts";
import type { EtcdValue } from "../../../../datastore/etcd/etcd-keys.ts";
import { parsedJson, withoutNulls } from "./values.ts";

/** IPAM in etcd has no metadata, and each kind a form of its own: values by key. */
export interface IpamKind {
  noun: "ipamBlock" | "blockAffinity" | "ipamHandle" | "ipamConfiguration";
  /** Undefined for a key of another kind. */
  read(value: EtcdValue): { name: string; spec: object; labels?: Record<string, string> } | undefined;
  keyOf(spec: Fields): string;
  written(spec: Fields): object;
}

// biome-ignore lint/suspicious/noExplicitAny: specs of CRDs, by the fields that the table names.
type Fields = any;

const ROOT = `/${calicoNames.dialect}/ipam/v2/`;
const BLOCK = new RegExp(`^${ROOT}assignment/ipv[46]/block/([^/]+)$`);
const AFFINITY = new RegExp(`^${ROOT}(host|virtual)/([^/]+)/ipv[46]/block/([^/]+)$`);
const HANDLE = new RegExp(`^${ROOT}handle/([^/]+)$`);

export const IPAM_KINDS: readonly IpamKind[] = [
  {
    noun: "ipamBlock",
    read({ key, value }) {
      const cidr = cidrIn(BLOCK.exec(key)?.[1]);
      if (cidr === undefined) return undefined;
      const { hostAffinity, ...block } = withoutNulls(parsedJson(key, value)) as Fields;
      const affinity = block.affinity ?? (hostAffinity && `host:${hostAffinity}`);
      const attributes = (block.attributes ?? []).map(withoutNulls);
      const spec = {
        ...{ deleted: false, sequenceNumber: 0, unallocated: [], allocations: [], strictAffinity: false },
        ...{ ...block, cidr, attributes },
        ...(affinity && { affinity }),
      };
      return { name: nameOfCidr(cidr), spec };
    },
    keyOf: ({ cidr }) => `${ROOT}assignment/${familyOf(cidr)}/block/${cidr.replace("/", "-")}`,
    written: ({ strictAffinity: _, affinity = null, sequenceNumberForAllocation = null, attributes, ...spec }) => ({
      ...spec,
      affinity,
      attributes: attributes.map(({ handle_id = null, secondary = null }: Fields) => ({ handle_id, secondary })),
      sequenceNumberForAllocation,
    }),
  },
  {
    noun: "blockAffinity",
    read({ key, value }) {
      const [, type = "", node = "", block] = AFFINITY.exec(key) ?? [];
      const cidr = cidrIn(block);
      if (cidr === undefined) return undefined;
      // Before v3.0.7 an affinity had no value.
      const { state = "", deleted = false } = value === "" ? {} : (parsedJson(key, value) as Fields);
      const spec = { state, node, type, cidr, deleted: String(deleted) };
      return { name: affinityName(node, cidr), spec, labels: affinityLabels(spec) };
    },
    keyOf: ({ type = "host", node, cidr }) =>
      `${ROOT}${type}/${node}/${familyOf(cidr)}/block/${cidr.replace("/", "-")}`,
    written: ({ state, deleted }) => ({ state, deleted: deleted === "true" }),
  },
  {
    noun: "ipamHandle",
    read({ key, value }) {
      const handleID = HANDLE.exec(key)?.[1];
      if (handleID === undefined) return undefined;
      const { block = {}, deleted = false } = withoutNulls(parsedJson(key, value)) as Fields;
      return { name: handleID.toLowerCase(), spec: { handleID, block, deleted } };
    },
    keyOf: ({ handleID }) => `${ROOT}handle/${handleID}`,
    written: ({ block, deleted = false }) => ({ block, deleted }),
  },
  {
    noun: "ipamConfiguration",
    read({ key, value }) {
      if (key !== `${ROOT}config`) return undefined;
      const { strict_affinity, auto_allocate_blocks, maxBlocksPerHost } = parsedJson(key, value) as Fields;
      const spec = {
        ...{ strictAffinity: strict_affinity ?? false, autoAllocateBlocks: auto_allocate_blocks ?? false },
        ...(maxBlocksPerHost && { maxBlocksPerHost }),
      };
      return { name: calicoNames.singleton, spec };
    },
    keyOf: () => `${ROOT}config`,
    written: ({ strictAffinity, autoAllocateBlocks, maxBlocksPerHost }) => ({
      ...(strictAffinity && { strict_affinity: true }),
      ...(autoAllocateBlocks && { auto_allocate_blocks: true }),
      ...(maxBlocksPerHost && { maxBlocksPerHost }),
    }),
  },
];

/** Of an object that agents of the Kubernetes datastore wrote: what CRDs leave out or have in addition is as etcd has it. */
export function ipamFromKubernetes(noun: IpamKind["noun"], object: KubeObject): KubeObject {
  const spec = (object["spec"] ?? {}) as Fields;
  if (noun === "ipamBlock") {
    const { deleted = false, sequenceNumber = 0, strictAffinity = false } = spec;
    return { ...object, spec: { ...spec, deleted, sequenceNumber, strictAffinity } };
  }
  if (noun === "blockAffinity") {
    const whole = { ...spec, type: spec.type || "host", deleted: spec.deleted || "false" };
    const { metadata } = object;
    return {
      ...object,
      metadata: { ...metadata, labels: { ...metadata.labels, ...affinityLabels(whole) } },
      spec: whole,
    };
  }
  if (noun === "ipamHandle") return { ...object, spec: { ...spec, deleted: spec.deleted ?? false } };
  const { maxBlocksPerHost, ...limits } = spec;
  return { ...object, spec: { ...limits, ...(maxBlocksPerHost && { maxBlocksPerHost }) } };
}

/** `10.0.0.0-26`, as a key has it. */
function cidrIn(text: string | undefined): string | undefined {
  const at = text?.lastIndexOf("-") ?? -1;
  return text === undefined || at < 0 ? undefined : `${text.slice(0, at)}/${text.slice(at + 1)}`;
}

const familyOf = (cidr: string): string => (cidr.includes(":") ? "ipv6" : "ipv4");
const nameOfCidr = (cidr: string): string => cidr.replace(/[.:/]/g, "-");

const LONGEST_NAME = 252;
const HASH_LENGTH = 11;

/** A name that would be too long is cut and has a hash, so that two never become one. */
function affinityName(node: string, cidr: string): string {
  const block = nameOfCidr(cidr);
  const name = `${node}-${block}`;
  if (name.length <= LONGEST_NAME) return name;
  const hash = createHash("sha256").update(`${node}+${block}`).digest("hex").slice(0, HASH_LENGTH);
  return `${node.slice(0, LONGEST_NAME - block.length - HASH_LENGTH - 2)}-${block}-${hash}`;
}

/** By these the public system's IPAM finds the blocks of a node. */
function affinityLabels({ node, type, cidr }: { node: string; type: string; cidr: string }): Record<string, string> {
  const { group } = calicoNames.groups.served;
  return {
    [`${group}/hostname-hash`]: base32(createHash("sha3-256").update(node).digest()),
    [`${group}/affinity-type`]: type,
    [`${group}/ip-version`]: cidr.includes(":") ? "6" : "4",
  };
}

const BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return (bits.match(/.{1,5}/g) ?? []).map((five) => BASE32[Number.parseInt(five.padEnd(5, "0"), 2)]).join("");
}
