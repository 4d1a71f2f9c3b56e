import type { KubeObject } from "../api/object.ts";
import { fieldCause, invalidMessage, requiredMessage } from "../api/schema/schema-cause.ts";
import type { StatusCause } from "../api/status.ts";
import type { ServedKind } from "./resource.ts";

/** Rules every object's metadata keeps, in the words Kubernetes uses for them. */
export function metadataProblems(object: KubeObject, kind: ServedKind, old: KubeObject | undefined): StatusCause[] {
  const { metadata } = object;
  return [
    ...nameProblems(metadata.name, kind),
    ...labelProblems(metadata.labels),
    ...annotationProblems(metadata.annotations),
    ...finalizerProblems(metadata.finalizers, old),
    ...ownerProblems(metadata.ownerReferences),
  ];
}

const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SERVICE_RULE =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

function nameProblems(name: string | undefined, kind: ServedKind): StatusCause[] {
  const at = "metadata.name";
  if (!name) return [fieldCause(at, requiredMessage("name or generateName is required"))];
  if (kind.group === "rbac.authorization.k8s.io") {
    return name.includes("/") || name.includes("%") || name === "." || name === ".."
      ? [fieldCause(at, invalidMessage(name, "may not contain '/' or '%', nor be '.' or '..'"))]
      : [];
  }
  if (kind.group === "" && kind.kind === "Namespace") {
    return name.length <= 63 && DNS_LABEL.test(name) ? [] : [fieldCause(at, invalidMessage(name, LABEL_RULE))];
  }
  if (kind.group === "" && kind.kind === "Service") {
    return name.length <= 63 && /^[a-z]/.test(name) && DNS_LABEL.test(name)
      ? []
      : [fieldCause(at, invalidMessage(name, SERVICE_RULE))];
  }
  return name.length <= 253 && SUBDOMAIN.test(name) ? [] : [fieldCause(at, invalidMessage(name, SUBDOMAIN_RULE))];
}

const QUALIFIED_NAME = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)$/;
const NAME_PART_RULE =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

function labelProblems(labels: Record<string, string> | undefined): StatusCause[] {
  return Object.entries(labels ?? {}).flatMap(([key, value]) => {
    const causes = isQualifiedName(key) ? [] : [fieldCause("metadata.labels", invalidMessage(key, NAME_PART_RULE))];
    const text = String(value);
    if (text !== "" && (text.length > 63 || !QUALIFIED_NAME.test(text))) {
      causes.push(fieldCause("metadata.labels", invalidMessage(value, VALUE_RULE)));
    }
    return causes;
  });
}

const ANNOTATION_LIMIT = 262144;

function annotationProblems(annotations: Record<string, string> | undefined): StatusCause[] {
  let size = 0;
  const causes: StatusCause[] = [];
  for (const [key, value] of Object.entries(annotations ?? {})) {
    size += key.length + String(value).length;
    if (!isQualifiedName(key.toLowerCase())) {
      causes.push(fieldCause("metadata.annotations", invalidMessage(key, NAME_PART_RULE)));
    }
  }
  if (size > ANNOTATION_LIMIT) {
    causes.push(fieldCause("metadata.annotations", `Too long: may not be more than ${ANNOTATION_LIMIT} bytes`));
  }
  return causes;
}

function isQualifiedName(key: string): boolean {
  const slash = key.indexOf("/");
  const name = slash < 0 ? key : key.slice(slash + 1);
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  if (name.length === 0 || name.length > 63 || !QUALIFIED_NAME.test(name)) return false;
  return prefix === undefined || (prefix.length <= 253 && SUBDOMAIN.test(prefix));
}

/** A deleted object may lose finalizers, never gain them: its deleter must be able to know what it waits for. */
function finalizerProblems(finalizers: string[] | undefined, old: KubeObject | undefined): StatusCause[] {
  const causes = (finalizers ?? [])
    .filter((name) => !isQualifiedName(name))
    .map((name) => fieldCause("metadata.finalizers", invalidMessage(name, NAME_PART_RULE)));
  if (old?.metadata.deletionTimestamp) {
    const before = new Set(old.metadata.finalizers ?? []);
    const added = (finalizers ?? []).filter((name) => !before.has(name));
    if (added.length > 0) {
      const message = `Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers [${added.map((name) => `"${name}"`).join(" ")}]`;
      causes.push(fieldCause("metadata.finalizers", message));
    }
  }
  return causes;
}

function ownerProblems(owners: KubeObject["metadata"]["ownerReferences"]): StatusCause[] {
  if (!Array.isArray(owners)) return [];
  const causes: StatusCause[] = [];
  owners.forEach((owner, index) => {
    for (const field of ["apiVersion", "kind", "name", "uid"] as const) {
      if (!owner[field]) {
        causes.push(fieldCause(`metadata.ownerReferences[${index}].${field}`, requiredMessage("must not be empty")));
      }
    }
  });
  const controllers = owners.filter((owner) => owner.controller);
  if (controllers.length > 1) {
    const message = invalidMessage(
      owners,
      `Only one reference can have Controller set to true. Found "true" in references for ${controllers.map((owner) => `${owner.kind}/${owner.name}`).join(" and ")}`,
    );
    causes.push(fieldCause("metadata.ownerReferences", message));
  }
  return causes;
}
