import type { V3Kind } from "../aggregated/v3-kinds.ts";
import { servedPolicyName } from "../api/resources/policy-names.ts";
import type { Translator } from "../api/resources/v3-translate.ts";
import { type Status, type StatusDetails, StatusError } from "../api/status.ts";

/** A refusal of the main API server in the terms of this API. What was refused to this server itself is not the client's fault. */
export function refusalToServed(error: unknown, kind: V3Kind, translator: Translator): unknown {
  if (!(error instanceof StatusError)) return error;
  const { status } = error;
  const message = status.message ?? "";
  if (error.code === 401 || (error.code === 403 && /User "system:serviceaccount:[^"]*" cannot /.test(message))) {
    const text = `Internal error occurred: this API may not do that in the main one: ${message}`;
    return new StatusError(500, "InternalError", text);
  }
  const said = statusToServed(status, kind, translator);
  return new StatusError(error.code, error.reason, said.message ?? "", said.details);
}

export function statusToServed(status: Status, kind: V3Kind, translator: Translator): Status {
  const name = status.details?.name;
  const text = (message: string) => translator.text(kind, message, name);
  return {
    ...status,
    ...(status.message !== undefined && { message: text(status.message) }),
    ...(status.details && { details: detailsToServed(status.details, kind, translator, text) }),
  };
}

function detailsToServed(
  details: StatusDetails,
  kind: V3Kind,
  translator: Translator,
  text: (message: string) => string,
): StatusDetails {
  const { name, group, uid, causes } = details;
  const named = details.kind === kind.stored.kind ? kind.served.kind : kind.served.plural;
  const ours = details.kind === kind.stored.kind || details.kind === kind.stored.plural;
  return {
    ...details,
    ...(name !== undefined && { name: kind.tiered ? servedPolicyName(name) : name }),
    ...(group === kind.stored.group && { group: kind.served.group }),
    ...(ours && { kind: named }),
    ...(uid !== undefined && { uid: translator.uid(uid) }),
    ...(causes && {
      causes: causes.map((cause) => ({ ...cause, ...(cause.message && { message: text(cause.message) }) })),
    }),
  };
}
