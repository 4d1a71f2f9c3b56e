import type { DataplaneModel, Direction, ModelDelta } from "../../calc/model.ts";
import type { CodedError } from "../../kit/errors.ts";
import type { ApplyReport, ObjectOutcome } from "../contract.ts";
import { errors } from "./errors.ts";
import { policyChainName, profileChainName } from "./policy-chains.ts";

/** The outcome of each object, from the chains it is in. Routes are not part of nftables. */
export function applyReport(
  model: DataplaneModel,
  delta: ModelDelta,
  refused: ReadonlyMap<string, Error>,
  failed: Error | undefined,
): ApplyReport {
  const outcome = (kind: ObjectOutcome["kind"], id: string, own?: Error): ObjectOutcome => {
    const why = failed ?? own;
    return why ? { kind, id, failed: notWritten(kind, id, why) } : { kind, id };
  };
  const chainOf = (names: string[]) => names.map((name) => refused.get(name)).find((error) => error !== undefined);
  const policyChains = (id: string) =>
    directions((direction) => [policyChainName("decide", id, direction), policyChainName("preDNAT", id, direction)]);
  const waiting = refused.size > 0;
  // What was refused is reported again with every delta, whether it is in the delta or not.
  const policies = waiting ? [...model.policies.values()] : delta.policies.set;
  const profiles = waiting ? [...model.profiles.values()] : delta.profiles.set;
  return {
    objects: [
      ...delta.ipSets.set.map(({ id }) => outcome("ipSet", id)),
      ...delta.ipSets.change.map(({ id }) => outcome("ipSet", id)),
      ...policies.map(({ id }) => outcome("policy", id, chainOf(policyChains(id)))),
      ...profiles.map(({ id }) => outcome("profile", id, chainOf(directions((way) => [profileChainName(id, way)])))),
      ...delta.endpoints.set.map(({ id }) => outcome("endpoint", id)),
      ...delta.hostEndpoints.set.map(({ id }) => outcome("hostEndpoint", id)),
    ],
  };
}

function directions(names: (direction: Direction) => string[]): string[] {
  return [...names("ingress"), ...names("egress")];
}

function notWritten(kind: string, id: string, why: Error): CodedError {
  return errors.NFT_NOT_WRITTEN(`${kind} ${id}`, why.message).from(why);
}
