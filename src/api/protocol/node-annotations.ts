import { dataplaneAnnotation } from "./agent-report.ts";
import { nodeInterfacesAnnotations } from "./node-interfaces.ts";
import { nodeNetworkAnnotations } from "./node-network.ts";

const NO_NETWORK = {
  ...{ addressV4: undefined, addressV6: undefined },
  ...{ tunnelAddressV4: undefined, tunnelAddressV6: undefined, tunnelMac: undefined },
};

/** Everything agents write on Nodes. */
export const NODE_ANNOTATIONS: readonly string[] = Object.keys({
  ...nodeNetworkAnnotations(NO_NETWORK),
  ...nodeInterfacesAnnotations([]),
  ...dataplaneAnnotation("Nftables"),
});
