import { BGP_VARIABLES } from "../../agent/bgp/config.ts";
import { AGENT_VARIABLES, INIT_VARIABLES } from "../../agent/config.ts";
import { OVERLAY_VARIABLES } from "../../agent/separate-overlay/config.ts";
import { INSTALL_VARIABLES } from "../../cni/config.ts";
import { code, GENERATED, sentence, table } from "./markdown.ts";

const PROGRAMS = {
  "vendor node": AGENT_VARIABLES,
  "vendor bgp": BGP_VARIABLES,
  "vendor node-init": INIT_VARIABLES,
  "vendor cni-install": INSTALL_VARIABLES,
  "vendor overlay": OVERLAY_VARIABLES,
} as const;

/** Environment variables of the programs that run on nodes. */
export function variableReference(): string {
  const sections = Object.entries(PROGRAMS).map(
    ([program, variables]) =>
      `## ${program}\n\n${table(
        ["Variable", "Meaning"],
        Object.entries(variables).map(([name, meaning]) => [code(name), sentence(meaning)]),
      )}`,
  );
  return [
    GENERATED("the variables that src/agent and src/cni declare"),
    "# Environment variables",
    "Programs of a node read these variables, and no others, from the environment of their container. All programs also read `LOG_LEVEL` (`debug`, `info`, `warn` or `error`) and the address of the API server, `ORCHESTRATOR_SERVICE_HOST` and `ORCHESTRATOR_SERVICE_PORT`. How the plain manifests set them: [plain manifests](../guide/manifests.md).",
    ...sections,
    "## Fields of the DataplaneConfiguration",
    "The agent takes each field of the [DataplaneConfiguration](resources/dataplaneconfiguration.md) from a variable too: `DATAPLANE_` and the name of the field in capital letters, such as `DATAPLANE_VXLANPORT=4790`. A variable wins over the resource. Lists and objects are written in JSON, lists of texts also separated by commas. A value that the resource does not allow ends the agent with `AGENT_ENV`; a name that is no field is logged and has no effect. `vendor node show settings` prints each value and who set it.",
    "",
  ].join("\n\n");
}
