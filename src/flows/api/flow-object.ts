import { FLOW_LOGS_API } from "../../api/names.ts";
import { groupVersion, type KubeObject } from "../../api/object.ts";
import type { Column } from "../../apiserver/resource.ts";
import type { SeenFlow } from "../store/selection.ts";
import { FLOW_COLUMNS, type TableFlow } from "../table.ts";
import { FLOW_KIND, type FlowObject } from "./flow-kind.ts";

/** A flow in a list of one namespace is of that namespace; in a list of all it is of the one it went to, or came from. */
export function flowObject(flow: SeenFlow, namespace: string): FlowObject {
  const { id, key, lastSeen, resourceVersion, sourceAddresses, destinationAddresses, more, ...counts } = flow;
  return {
    apiVersion: groupVersion(FLOW_LOGS_API),
    kind: FLOW_KIND,
    metadata: {
      name: id,
      namespace: namespace || key.to.namespace || key.from.namespace,
      // Stable, as everything of an object that is made when it is asked for.
      uid: id,
      resourceVersion,
    },
    ...key,
    ...{ sourceAddresses, destinationAddresses },
    ...(more ? { moreAddresses: true } : {}),
    ...counts,
    lastSeen: new Date(lastSeen).toISOString(),
  };
}

/** The same again, as a row of the table is made of it. */
export function tableFlow(object: KubeObject): TableFlow {
  const { apiVersion, kind, metadata, sourceAddresses, destinationAddresses, moreAddresses, lastSeen, ...rest } =
    object as FlowObject;
  const { packets, bytes, replyPackets, replyBytes, started, ended, live, ...key } = rest;
  return {
    id: metadata.name,
    ...{ key, packets, bytes, replyPackets, replyBytes, started, ended, live },
    ...{ sourceAddresses: [...sourceAddresses], destinationAddresses: [...destinationAddresses] },
    ...{ more: moreAddresses ?? false, lastSeen: Date.parse(lastSeen) },
  };
}

/** For kubectl. */
export const TABLE_COLUMNS: readonly Column[] = FLOW_COLUMNS.map(({ name, description, priority, text }) => ({
  ...{ name, description, priority, type: "string" },
  value: (object) => text(tableFlow(object)),
}));
