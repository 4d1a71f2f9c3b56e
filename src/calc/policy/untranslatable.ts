import type { ModelProblem } from "../model.ts";

/**
 * What can be wrong with an object that was stored all the same. A rule that cannot be read becomes a rule that denies everything from there on:
 * what it should have denied is not known. A policy whose selector cannot be read is left out: whom it is for is not known.
 */
export type ProblemCode =
  | "SELECTOR_UNREADABLE"
  | "RULE_UNREADABLE"
  | "DO_NOT_TRACK_UNSUPPORTED"
  | "HOST_PORT_UNSUPPORTED"
  | "POD_ADDRESS_REFUSED"
  | "POD_INTERFACE_UNKNOWN"
  | "SCTP_SERVICE_UNSUPPORTED"
  | "SERVICE_ADDRESS_REFUSED"
  | "SETTINGS_WITHOUT_EFFECT";

/** Carries a problem out of the depth of a translation; never leaves this module. */
export class Untranslatable extends Error {
  readonly code: ProblemCode;

  constructor(code: ProblemCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Every field of an object, for `refuseUnknown`: does not compile while one is missing. */
export type KnownFields<T> = { readonly [K in keyof T]-?: true };

/** A field of a later release may narrow what a rule matches. Without it the rule would match too much. */
export function refuseUnknown<T extends object>(value: T | undefined, known: KnownFields<T>): void {
  const unknown = Object.keys(value ?? {}).filter((field) => !Object.hasOwn(known, field));
  if (unknown.length === 0) return;
  throw new Untranslatable("RULE_UNREADABLE", `this release does not know the field ${unknown.sort().join(", ")}`);
}

export function problem(
  kind: string,
  object: { name: string; namespace?: string },
  code: ProblemCode,
  message: string,
): ModelProblem {
  const path = object.namespace === undefined ? object.name : `${object.namespace}/${object.name}`;
  const { name, namespace } = object;
  return {
    id: `${kind} ${path} ${code}`,
    kind,
    object: namespace === undefined ? { name } : { name, namespace },
    code,
    message,
  };
}
