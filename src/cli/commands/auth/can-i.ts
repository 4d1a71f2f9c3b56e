import { calicoNames, type Names, vendorNames } from "../../../api/names.ts";
import type { Client } from "../../../cluster/client.ts";
import { missingRights } from "../../../procedures/rights/missing-rights.ts";
import { observationRights } from "../../../procedures/rights/observation-rights.ts";
import { groupRights, type Right, resourceName, rightKey } from "../../../procedures/rights/right.ts";
import { roleObjects } from "../../../procedures/rights/role-objects.ts";
import { errors } from "../../errors.ts";
import { print, type Table } from "../../printer.ts";
import type { Session } from "../../session.ts";

export const isCanI = ({ intent }: Session): boolean => intent === "can-i" || intent === "can-i --list";

/** Rights of the commands that only read. */
export async function canIRead(session: Session, client: Client, signal: AbortSignal): Promise<void> {
  const names = session.flags.names === "calico" ? calicoNames : vendorNames;
  await answerCanI(session, client, { rights: observationRights(names), name: "vendorctl-check", names }, signal);
}

interface Question {
  rights: readonly Right[];
  /** Of the roles that are printed. */
  name: string;
  names: Names;
}

/** Prints the answer the way it was asked for. An optional right is listed, and its absence is no failure. */
export async function answerCanI(
  session: Session,
  client: Client,
  { rights, name, names }: Question,
  signal: AbortSignal,
): Promise<void> {
  const missing = await missingRights(client, rights, signal);
  const required = missing.filter(({ optional }) => !optional);
  if (session.intent === "can-i") session.out(required.length === 0 ? "yes\n" : "no\n");
  else {
    const list = { apiVersion: "v1", kind: "List", items: roleObjects(name, rights, names) };
    await print(session, list, () => rightsTable(rights, missing));
  }
  const count = new Set(required.map(rightKey)).size;
  if (count > 0) throw errors.CAN_I_NOT(count);
}

/** One row for all names of a resource; the roles of -o yaml have them. */
function rightsTable(rights: readonly Right[], missing: readonly Right[]): Table {
  const denied = new Set(missing.map(rightKey));
  const rows = groupRights(rights).map(({ verbs, group, resource, namespace, names }) => {
    const asked = verbs.map((verb) => {
      const each = names.length === 0 ? [undefined] : names;
      const no = each.some((name) => denied.has(rightKey({ verb, group, resource, ...place(namespace, name) })));
      return { verb, no };
    });
    const no = asked.filter((one) => one.no).map(({ verb }) => verb);
    const allowed = no.length === 0 ? "yes" : no.length === verbs.length ? "no" : `no: ${no.join(",")}`;
    return [verbs.join(","), resourceName({ group, resource }), named(names), namespace ?? "*", allowed];
  });
  return { columns: ["VERB", "RESOURCE", "NAME", "NAMESPACE", "ALLOWED"], rows, optional: ["NAME"] };
}

function place(namespace: string | undefined, name: string | undefined): Pick<Right, "namespace" | "name"> {
  return { ...(namespace !== undefined && { namespace }), ...(name !== undefined && { name }) };
}

function named(names: readonly string[]): string {
  const [first = "*", ...more] = names;
  return more.length === 0 ? first : `${first} and ${more.length} more`;
}
