import type { KubeObject } from "../object.ts";
import { dataplaneAnnotation } from "./agent-report.ts";
import { nodeInterfacesAnnotations } from "./node-interfaces.ts";
import { nodeNetworkAnnotations } from "./node-network.ts";

const NO_NETWORK = {
  ...{ addressV4: undefined, addressV6: undefined },
  ...{ tunnelAddressV4: undefined, tunnelAddressV6: undefined, tunnelMac: undefined },
};

/** Everything agents write on Nodes. */
const NODE_ANNOTATIONS = Object.keys({
  ...nodeNetworkAnnotations(NO_NETWORK),
  ...nodeInterfacesAnnotations([]),
  ...dataplaneAnnotation("Nftables"),
});

/** As a merge patch that removes what the agent of this Node wrote; undefined where there is nothing. */
export function withoutNodeAnnotations({ metadata }: KubeObject): object | undefined {
  const has = NODE_ANNOTATIONS.filter((key) => metadata.annotations?.[key] !== undefined);
  return has.length === 0
    ? undefined
    : { metadata: { annotations: Object.fromEntries(has.map((key) => [key, null])) } };
}
