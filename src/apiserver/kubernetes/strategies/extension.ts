import type { KubeObject } from "../../../api/object.ts";
import type { Schema } from "../../../api/schema/schema.ts";
import { fieldCause } from "../../../api/schema/schema-cause.ts";
import { structuralProblems } from "../../../api/schema/schema-structural.ts";
import type { StatusCause } from "../../../api/status.ts";
import type { Strategy } from "../../resource.ts";
import { ownSpec, specOf } from "../shapes.ts";
import { freshStatus } from "./fresh-status.ts";
import { causes, dnsLabel, duplicate, forbidden, immutable, invalid, required, unsupported } from "./rules.ts";

/** Kinds that extend the API itself: custom resource definitions and aggregated APIs. */

interface CrdVersion {
  name?: string;
  served?: boolean;
  storage?: boolean;
  schema?: { openAPIV3Schema?: Schema };
}

interface CrdSpec {
  group?: string;
  scope?: string;
  names?: { plural?: string; singular?: string; kind?: string; listKind?: string; shortNames?: string[] };
  versions?: CrdVersion[];
  conversion?: { strategy?: string };
  preserveUnknownFields?: boolean;
}

interface CrdStatus {
  storedVersions?: string[];
}

const APPROVAL = "api-approved.kubernetes.io";
const DOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export const crdStrategy: Strategy = {
  setDefaults(crd) {
    const spec = ownSpec<CrdSpec>(crd);
    spec.conversion ??= {};
    spec.conversion.strategy ||= "None";
    if (!spec.names?.kind) return;
    spec.names.singular ||= spec.names.kind.toLowerCase();
    spec.names.listKind ||= `${spec.names.kind}List`;
  },
  prepareForCreate(crd) {
    const stored = storageVersions(specOf<CrdSpec>(crd));
    crd["status"] = { acceptedNames: { plural: "", kind: "" }, conditions: [], storedVersions: stored.slice(0, 1) };
  },
  prepareForUpdate(crd) {
    // Objects may be kept in every version that was ever the storage version.
    const status = (crd["status"] ?? {}) as CrdStatus;
    const known = status.storedVersions ?? [];
    const added = storageVersions(specOf<CrdSpec>(crd)).filter((name) => !known.includes(name));
    if (added.length > 0) crd["status"] = { ...status, storedVersions: [...known, ...added] };
  },
  validate(crd) {
    const spec = specOf<CrdSpec>(crd);
    return causes(namingProblems(crd, spec), versionProblems(spec), approvalProblems(crd, spec));
  },
  validateUpdate(crd, old) {
    const [next, before] = [specOf<CrdSpec>(crd), specOf<CrdSpec>(old)];
    const names = (next.versions ?? []).map((version) => version.name);
    const lost = ((crd["status"] as CrdStatus | undefined)?.storedVersions ?? []).filter(
      (name) => !names.includes(name),
    );
    return causes(
      immutable("spec.group", next.group, before.group),
      immutable("spec.scope", next.scope, before.scope),
      immutable("spec.names.kind", next.names?.kind, before.names?.kind),
      immutable("spec.names.plural", next.names?.plural, before.names?.plural),
      lost.map((name, i) => invalid(`status.storedVersions[${i}]`, name, lostVersion(name))),
    );
  },
};

const lostVersion = (name: string): string =>
  `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;

function storageVersions(spec: Partial<CrdSpec>): string[] {
  return (spec.versions ?? []).filter((version) => version.storage).flatMap((version) => version.name ?? []);
}

function namingProblems(crd: KubeObject, spec: Partial<CrdSpec>): StatusCause[] {
  const { group = "", names = {}, scope } = spec;
  const expected = `${names.plural}.${group}`;
  return causes(
    crd.metadata.name !== expected &&
      invalid("metadata.name", crd.metadata.name, 'must be spec.names.plural+"."+spec.group'),
    group !== "" && !DOMAIN.test(group) && invalid("spec.group", group, "must be a lowercase RFC 1123 subdomain"),
    group !== "" &&
      DOMAIN.test(group) &&
      !group.includes(".") &&
      invalid("spec.group", group, "should be a domain with at least one dot"),
    scope !== undefined &&
      scope !== "Cluster" &&
      scope !== "Namespaced" &&
      unsupported("spec.scope", scope, ["Cluster", "Namespaced"]),
    dnsLabel("spec.names.plural", names.plural),
    dnsLabel("spec.names.singular", names.singular),
    dnsLabel("spec.names.kind", names.kind?.toLowerCase()),
    (names.shortNames ?? []).flatMap((name, i) => dnsLabel(`spec.names.shortNames[${i}]`, name)),
  );
}

function versionProblems(spec: Partial<CrdSpec>): StatusCause[] {
  const versions = spec.versions ?? [];
  const seen = new Set<string | undefined>();
  const each = versions.flatMap((version, i) => {
    const path = `spec.versions[${i}]`;
    const again = seen.has(version.name);
    seen.add(version.name);
    const schema = version.schema?.openAPIV3Schema;
    return causes(
      dnsLabel(`${path}.name`, version.name),
      again && duplicate(`${path}.name`, version.name),
      schema === undefined && required(`${path}.schema.openAPIV3Schema`, "schemas are required"),
      schema !== undefined &&
        structuralProblems(schema, `${path}.schema.openAPIV3Schema`).map((one) => fieldCause(one.path, one.message)),
    );
  });
  return causes(
    versions.length === 0 && required("spec.versions", "must have at least one version"),
    versions.length > 0 &&
      storageVersions(spec).length !== 1 &&
      invalid("spec.versions", seenNames(versions), "must have exactly one version marked as storage version"),
    spec.preserveUnknownFields === true &&
      invalid(
        "spec.preserveUnknownFields",
        true,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
      ),
    each,
  );
}

const seenNames = (versions: readonly CrdVersion[]): string[] => versions.map((version) => version.name ?? "");

/** Kubernetes keeps its own domains for itself, unless a CRD says who approved it. */
function approvalProblems(crd: KubeObject, spec: Partial<CrdSpec>): StatusCause[] {
  const group = spec.group ?? "";
  const guarded = ["k8s.io", "kubernetes.io"].some((domain) => group === domain || group.endsWith(`.${domain}`));
  if (!guarded || crd.metadata.annotations?.[APPROVAL]) return [];
  return [
    required(`metadata.annotations[${APPROVAL}]`, `protected groups must have approval annotation "${APPROVAL}"`),
  ];
}

interface ApiServiceSpec {
  group?: string;
  version?: string;
  groupPriorityMinimum?: number;
  versionPriority?: number;
  insecureSkipTLSVerify?: boolean;
  caBundle?: string;
  service?: { name?: string; namespace?: string; port?: number };
}

export const apiServiceStrategy: Strategy = {
  setDefaults(object) {
    const { service } = ownSpec<ApiServiceSpec>(object);
    if (service) service.port ??= 443;
  },
  prepareForCreate: freshStatus(),
  validate(object) {
    const spec = specOf<ApiServiceSpec>(object);
    const expected = `${spec.version ?? ""}.${spec.group ?? ""}`;
    const within = (value: number | undefined, most: number) => value !== undefined && value > 0 && value <= most;
    return causes(
      object.metadata.name !== expected &&
        invalid("metadata.name", object.metadata.name, `must be \`spec.version+"."+spec.group\`: "${expected}"`),
      !spec.version && required("spec.version"),
      !within(spec.groupPriorityMinimum, 20_000) &&
        invalid("spec.groupPriorityMinimum", spec.groupPriorityMinimum ?? 0, "must be positive and less than 20000"),
      !within(spec.versionPriority, 1_000) &&
        invalid("spec.versionPriority", spec.versionPriority ?? 0, "must be positive and less than 1000"),
      spec.service && !spec.service.name && required("spec.service.name"),
      spec.service && !spec.service.namespace && required("spec.service.namespace"),
      !spec.service &&
        spec.insecureSkipTLSVerify &&
        forbidden("spec.insecureSkipTLSVerify", "local APIServices may not have insecureSkipTLSVerify"),
      !spec.service && !!spec.caBundle && forbidden("spec.caBundle", "local APIServices may not have a caBundle"),
      spec.insecureSkipTLSVerify &&
        !!spec.caBundle &&
        forbidden("spec.insecureSkipTLSVerify", "may not be true if caBundle is present"),
    );
  },
};
