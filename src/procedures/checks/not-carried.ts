import { customResourceDefinitions } from "../../api/schema/crd.ts";
import type { Observation } from "../observation.ts";
import { refusedByPublicOperator } from "../plans/install/public-operator-rules.ts";
import { blockingItems, type InventoryItem, inventoryOf } from "../plans/upgrade/inventory.ts";
import { type Check, fail, ok, skip, some } from "./check.ts";

/** What this tool's release does not carry of a cluster; undefined where its CRDs are not built in, or nothing was read. */
export function builtInInventory(seen: Observation): InventoryItem[] | undefined {
  if (seen.names.dialect !== "vendor" || !seen.stored) return undefined;
  return inventoryOf(seen, customResourceDefinitions());
}

export const NOT_CARRIED_CHECKS: readonly Check[] = [
  {
    code: "UPGRADE_NOT_CARRIED",
    title: "The new release does not carry everything",
    why: "Objects, fields, variables and annotations of older releases do nothing after the upgrade. vendorctl upgrade refuses what must be changed first, and what would be lost and was not accepted.",
    fix: "Do what the inventory says, or accept losses by name: vendorctl upgrade --accept-loss NAME",
    rule: "Nothing is lost unless it was accepted by name. See docs/guide/upgrade.md#not-carried.",
    group: "versions",
    for: ["upgrade"],
    planned: ["upgrade"],
    run: (seen) => {
      if (seen.service.method === "none") return skip("the service is not installed");
      if (!seen.stored) return skip("stored objects were not read");
      const inventory = builtInInventory(seen);
      if (!inventory) return skip("the CRDs of these names are not built in; vendorctl plan upgrade reads them");
      const lines = blockingItems(inventory).map(({ name, fate, found }) => {
        const what = fate === "blocks" ? "blocks the upgrade" : "would be lost";
        return `${name} ${what}: ${some(found).join(", ")}`;
      });
      return lines.length > 0 ? fail(some(lines)) : ok(`${inventory.length} changed or kept, none lost`);
    },
  },
  {
    code: "OPERATOR_WILL_REFUSE",
    title: "The new operator will refuse the Installation",
    why: "The public system's operator validates the Installation when it starts, goes Degraded, and changes nothing until it is corrected.",
    fix: "Correct the Installation first.",
    rule: "What an operator would refuse is corrected before it is replaced. See docs/guide/upgrade.md#calico-clusters.",
    group: "versions",
    for: ["upgrade"],
    run: (seen) => {
      const { names, service } = seen;
      if (names.dialect !== "calico") return skip("applies to the public system's operator only");
      if (!service.installation) return skip("there is no Installation");
      const found = refusedByPublicOperator(service.installation, seen);
      return fail(some(found.map(({ path, message }) => `${path}: ${message}`)));
    },
  },
];
