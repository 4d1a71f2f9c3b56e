import type { Command } from "commander";
import { errors } from "../../errors.ts";
import { oneOf, someText } from "../../flags.ts";
import { document } from "../../help.ts";
import type { Start } from "../../program.ts";
import { addManifestFlags, addProcedureFlags } from "../runs/procedure.flags.ts";
import { addTrafficFlags, addWaveFlags } from "../switch/switch.flags.ts";
import { ACCEPT_LOSS, lossNames } from "./loss.flags.ts";

const PHASES = ["before", "after"] as const;
const ENCAPSULATIONS = ["vxlan", "vxlan-cross-subnet"] as const;

/** `vendorctl migrate …`: what an upgrade asks of things that are not the service's own, and moves it does not make. */
export function addMigrateCommands(program: Command, start: Start): void {
  const migrate = document(program.command("migrate"), {
    short: "Migrate what an upgrade would lose or leave behind",
  });
  const load = () => import("./migrate.run.ts");

  addProcedureFlags(
    document(migrate.command("owner-references"), {
      short: "Keep objects owned by v3 resources when their UIDs change (v3.28)",
      long: "Keep objects that v3 resources own. The UIDs of v3 resources change with v3.28, and the garbage collector would delete what they own.",
      examples: [
        ["Around an upgrade that another tool runs", "vendorctl migrate owner-references --phase before"],
        ["When it is over", "vendorctl migrate owner-references --phase after"],
      ],
    }),
  )
    .option(
      "--phase <before|after>",
      "the half to run, around an upgrade by another tool (default: both, waiting for the upgrade in between)",
      oneOf("--phase", PHASES),
    )
    .option(
      "--save-to <file>",
      "write every reference and its outcome to this file too",
      someText("--save-to", "the path of a file"),
    )
    .action(start(async () => (await load()).ownerReferences));

  addProcedureFlags(
    document(migrate.command("host-endpoints"), {
      short: "Replace your all-interfaces host endpoints by automatic ones",
      examples: [["Show which policies would start to apply to nodes", "vendorctl plan migrate host-endpoints"]],
    }),
  )
    .option("--accept-policies", "continue even if policies would start to apply to nodes")
    .option("--delete-temporary-policy", "delete the temporary policy of upgrades from before v3.14 at the end")
    .action(start(async () => (await load()).hostEndpoints));

  addManifestFlags(
    addProcedureFlags(
      document(migrate.command("sidecars"), {
        short: "Update the mesh's sidecar injector and restart its workloads",
        examples: [["For version 1.15 of the mesh", "vendorctl migrate sidecars --mesh-version 1.15"]],
      }),
    ),
  )
    .requiredOption("--mesh-version <version>", "version of the mesh", meshVersion)
    .action(start(async () => (await load()).sidecars));

  addEncapsulation(migrate, start);

  const moving = addProcedureFlags(
    document(migrate.command("operator"), {
      short: "Replace plain manifests by the operator, node by node",
      long: "Replace an installation from plain manifests by one of the operator. Your edits become fields of the Installation and the DataplaneConfiguration; what has no field is listed first. The agent of one node is replaced first, the others in waves, and no node ever has two. Canary traffic is measured meanwhile, and the migration is rolled back if it loses more than the budget.",
      examples: [
        ["Show the steps, and what would be lost", "vendorctl plan migrate operator"],
        ["Move one node of your choice first", "vendorctl migrate operator --canary NODE"],
      ],
    }),
  );
  const waves = addWaveFlags(moving, "move all nodes in one wave");
  addManifestFlags(addTrafficFlags(waves))
    .option("--force", "continue even if canary traffic already fails")
    .option("--accept-loss <name>", ACCEPT_LOSS, lossNames)
    .action(start(async () => (await load()).operator));

  const leaving = addProcedureFlags(
    document(migrate.command("datastore"), {
      short: "Move policies, pools and addresses from etcd to Kubernetes",
      long: "Move an installation of vendor-etcd.yaml or vendor-overlay-etcd.yaml to the Kubernetes datastore. etcd is locked, copied at one revision and compared object by object; then the agents switch, one node first, the others in waves. Until the last one has, new pods wait. Canary traffic is measured meanwhile, and the migration is rolled back if it loses more than the budget. The old data stays in etcd until it is dropped, and a rollback carries back what has changed since. With --names calico: from calico-etcd.yaml to calico.yaml, whose place --manifest-url names.",
      examples: [
        ["Show the steps, how long new pods wait, and what would be lost", "vendorctl plan migrate datastore"],
        ["Switch all agents in one wave", "vendorctl migrate datastore --no-waves"],
        ["Plan it for Calico", "vendorctl --names calico plan migrate datastore --manifest-url file:///DIR"],
        ["Remove the old data from etcd, once no rollback is needed", "vendorctl migrate datastore --drop-old-data"],
      ],
    }),
  );
  addManifestFlags(addTrafficFlags(addWaveFlags(leaving, "switch all nodes in one wave")))
    .option("--force", "continue even if canary traffic already fails")
    .option("--accept-loss <name>", ACCEPT_LOSS, lossNames)
    .option("--drop-old-data", "remove the data that an earlier migration left in etcd; there is no undo")
    .action(start(async () => (await load()).datastore));
}

/** Pools of IPIP, or without encapsulation, become pools of VXLAN while pods run. */
function addEncapsulation(migrate: Command, start: Start): void {
  const changing = addProcedureFlags(
    document(migrate.command("encapsulation"), {
      short: "Change IP pools from IPIP or none to VXLAN while pods run",
      long: "Change IP pools from IPIP, or from no encapsulation, to VXLAN while pods run. Every node is made ready for both first, then the pools change, then the nodes give up the old way. Canary traffic is measured meanwhile, and the change is rolled back if it loses more than the budget. It also runs before an upgrade; on releases whose agents do not report how they send, the plan says what can be lost.",
      examples: [
        ["Show the steps for all pools", "vendorctl plan migrate encapsulation --to vxlan"],
        ["Change one pool", "vendorctl migrate encapsulation --to vxlan-cross-subnet --pool NAME"],
        ["Before an upgrade from the public system", "vendorctl --names calico migrate encapsulation --to vxlan"],
      ],
    }),
  )
    .requiredOption(
      "--to <vxlan|vxlan-cross-subnet>",
      "in VXLAN to every node, or only to nodes of other subnets",
      oneOf("--to", ENCAPSULATIONS),
    )
    .option(
      "--pool <name>",
      "change this IPPool only (default: every pool that differs)",
      someText("--pool", "a name"),
    );
  addTrafficFlags(changing)
    .option("--force", "continue even if canary traffic already fails")
    .action(start(async () => (await import("./migrate.run.ts")).encapsulation));
}

/** It becomes part of a file's name, so it may hold nothing else. */
function meshVersion(text: string): string {
  const plain = text.replace(/^v/, "");
  if (/^\d+(\.\d+){0,2}$/.test(plain)) return plain;
  throw errors.BAD_VALUE("--mesh-version", text, "a version such as 1.15");
}
