import type { Command } from "commander";
import { CLUSTER_KINDS, type ClusterKind } from "../../../api/tables/cluster-kinds.ts";
import { dataplane, oneOf, someText } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";
import { addManifestFlags, addProcedureFlags } from "../runs/procedure.flags.ts";
import { addTrafficFlags, addWaveFlags } from "../switch/switch.flags.ts";
import { cidr, fieldEdits, hostAndPort } from "./install.flags.ts";

const KINDS = Object.keys(CLUSTER_KINDS) as ClusterKind[];
const METHODS = ["operator", "chart"] as const;

export function addInstallCommand(program: Command, start: Start): void {
  const installing = document(program.command("install"), {
    short: "Install the service, with eBPF where the cluster supports it",
    examples: [
      ["Show the plan, then run it", "vendorctl plan install && vendorctl install"],
      ["Install with the nftables data plane", "vendorctl install --dataplane standard"],
      [
        "Set the pod network and a field",
        "vendorctl install --pod-cidr 10.244.0.0/16 --set spec.vendorNetwork.mtu=1400",
      ],
    ],
  });
  addInstallFlags(addManifestFlags(addKindFlag(addProcedureFlags(installing)))).action(
    start(async () => (await import("./install.run.ts")).install),
  );
}

export function addSwitchCommand(program: Command, start: Start): void {
  const switching = document(program.command("switch"), {
    short: "Switch the data plane, node by node, under live traffic",
    long: "Switch the data plane of all nodes, one node first and the others in waves. With eBPF, Services move from kube-proxy to the data plane; with standard, kube-proxy serves them again. Canary traffic is measured during the switch, and the switch is rolled back if it loses more than the budget.",
    examples: [
      ["Switch to eBPF and replace kube-proxy", "vendorctl switch --to bpf"],
      ["Show the plan without running it", "vendorctl switch --to bpf --dry-run"],
      ["Switch back, half of the nodes at a time", "vendorctl switch --to standard --wave-size 50%"],
    ],
  }).requiredOption("--to <bpf|standard>", "data plane to switch to, also ebpf or nftables", dataplane("--to"));
  addTrafficFlags(addWaveFlags(addApiServerFlag(addKindFlag(addProcedureFlags(switching))), "switch all nodes at once"))
    .option("--force", "continue even if no kube-proxy would serve, or canary traffic already fails")
    .action(start(async () => (await import("../switch/switch.run.ts")).switchDataplane));
}

export function addUninstallCommand(program: Command, start: Start): void {
  const removing = document(program.command("uninstall"), {
    short: "Remove the service, in order, and verify that it is gone",
    long: "Remove the service's objects from the cluster, in order, remove from every node what its agent wrote to the kernel and to disk, and verify that nothing is left.",
    examples: [
      ["Show what would be removed", "vendorctl plan uninstall"],
      ["Remove the CRDs too, and with them all policies and pools", "vendorctl uninstall --remove-crds"],
    ],
  });
  addManifestFlags(addKindFlag(addProcedureFlags(removing)))
    .option("--remove-crds", "remove the CRDs too, and with them every policy and pool")
    .action(start(async () => (await import("./uninstall.run.ts")).uninstall));
}

export function addProxyCommands(program: Command, start: Start): void {
  const proxy = document(program.command("proxy"), {
    short: "Show, disable or restore kube-proxy",
    long: "Show, disable or restore kube-proxy. eBPF serves Services in its place (kube-proxy replacement).",
  });
  const load = () => import("../switch/proxy.run.ts");
  addKindFlag(
    document(proxy.command("status"), {
      short: "Show whether kube-proxy or eBPF serves Services",
      long: "Show whether kube-proxy or eBPF serves Services, whether they conflict, and the next command. Exits with 3 on a conflict.",
      examples: [["Show it as JSON", "vendorctl proxy status -o json"]],
    }),
  ).action(start(async () => (await load()).status));
  addKindFlag(
    addProcedureFlags(
      document(proxy.command("disable"), {
        short: "Disable kube-proxy, once eBPF serves Services",
        examples: [["Show how this kind of cluster does it", "vendorctl plan proxy disable"]],
      }),
    ),
  )
    .option("--force", "continue even if the data plane is not eBPF and nothing else serves Services")
    .action(start(async () => (await load()).disable));
  addKindFlag(
    addProcedureFlags(
      document(proxy.command("restore").alias("enable"), {
        short: "Restore kube-proxy, and wait until it serves on every node",
        examples: [["Run kube-proxy together with eBPF", "vendorctl proxy restore --leave-rules"]],
      }),
    ),
  )
    .option("--leave-rules", "with eBPF: stop removing kube-proxy's rules first")
    .option("--force", "continue even if eBPF keeps removing kube-proxy's rules")
    .action(start(async () => (await load()).restore));
}

function addInstallFlags(command: Command): Command {
  return addApiServerFlag(command)
    .option(
      "--method <method>",
      `how to install the operator: ${METHODS.join(" or ")}`,
      oneOf("--method", METHODS),
      "operator",
    )
    .option(
      "--dataplane <bpf|standard>",
      "data plane (default: bpf where the cluster supports it)",
      dataplane("--dataplane"),
    )
    .option("--pod-cidr <prefix>", "CIDR of the first IP pool (default: detected)", cidr("--pod-cidr"))
    .option("--set <field=value>", "set a field of the Installation (repeatable)", fieldEdits("--set"))
    .option("--flow-logs", "enable flow logs")
    .option("--flow-ui", "enable the flow UI, and flow logs with it")
    .option(
      "--chart <chart>",
      "folder, archive or reference of the chart, with --method chart",
      someText("--chart", "where the chart is"),
    )
    .option(
      "--save-custom-resources <file>",
      "write the custom resources to this file",
      someText("--save-custom-resources", "the path of a file"),
    );
}

function addApiServerFlag(command: Command): Command {
  return command.option(
    "--api-server <host:port>",
    "stable address of the API server (default: detected)",
    hostAndPort("--api-server"),
  );
}

function addKindFlag(command: Command): Command {
  return command.option(
    "--kind <kind>",
    `kind of cluster: ${KINDS.join(", ")} (default: detected)`,
    oneOf("--kind", KINDS),
  );
}
