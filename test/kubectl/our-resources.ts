import { resolve } from "node:path";
import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

const DEFINITIONS = resolve("manifests/operator-crds.yaml");

const INSTALLATION = `
apiVersion: operator.vendor.io/v1
kind: Installation
metadata:
  name: default
spec:
  variant: OpenSource
  vendorNetwork:
    linuxDataplane: Nftables
    hostPorts:
      portMapping: Enabled
    ipPools:
      - cidr: 10.244.0.0/16
`;

/** What an operator would report, so that the printer columns have something to print. */
const STATUS = {
  version: "v3.31.3",
  mtu: 1450,
  computed: { vendorNetwork: { linuxDataplane: "Nftables" } },
  conditions: [
    ["Ready", "True", "all of it works"],
    ["Progressing", "False", ""],
    ["Degraded", "False", ""],
  ].map(([type, status, message]) => ({
    type,
    status,
    message,
    reason: "AllGood",
    lastTransitionTime: "2024-01-01T00:00:00Z",
  })),
};

export const ourResources: Chapter = {
  title: "the service's own resources",
  steps(step) {
    step("every definition is applied at once, and again without a change", async (kubectl) => {
      const apply = () => kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", DEFINITIONS);
      const first = await apply();
      expect(first).toContain(
        "customresourcedefinition.apiextensions.k8s.io/installations.operator.vendor.io serverside-applied\n",
      );
      const versions = () => kubectl.ok("get", "crd", "-o", "jsonpath={.items[*].metadata.resourceVersion}");
      await kubectl.ok("wait", "--for=condition=established", "crd", "--all", "--timeout=20s");
      const before = await versions();
      expect(before.split(" ")).toHaveLength(first.trim().split("\n").length);
      expect(await apply()).toBe(first);
      expect(await versions()).toBe(before);
    });

    step("they are established, and discovered", async (kubectl) => {
      const met = await kubectl.ok("wait", "--for=condition=established", "crd", "--all", "--timeout=20s");
      expect(met).toContain("/networkpolicies.crd.vendor.io condition met\n");
      const resources = await kubectl.ok("api-resources", "--api-group=operator.vendor.io");
      expect(resources).toMatch(/^installations +operator\.vendor\.io\/v1 +false +Installation$/m);
      expect(resources).toMatch(/^vendorstatuses +vstatus +operator\.vendor\.io\/v1 +false +VendorStatus$/m);
      const versions = (await kubectl.ok("api-versions")).split("\n");
      expect(versions).toEqual(expect.arrayContaining(["crd.vendor.io/v1", "operator.vendor.io/v1"]));
    });

    step("explain tells what a field is for", async (kubectl) => {
      const explained = await kubectl.ok("explain", "installation.spec.vendorNetwork");
      expect(explained).toMatch(/KIND: +Installation/);
      expect(explained).toContain("Networking of pods, services and policy.");
      expect(explained).toMatch(/linuxDataplane\t<string>/);
      expect(explained).toContain("The data plane of Linux nodes: BPF is eBPF");
      const recursive = await kubectl.ok("explain", "installation.spec.vendorNetwork", "--recursive");
      expect(recursive).toMatch(/ipPools\t<\[\]Object>(\n.*)*\n {4,}cidr\t<string>/);
      expect(await kubectl.refused("explain", "installation.spec.vendorNetwork.warpDrive")).toBe(
        'error: field "warpDrive" does not exist\n',
      );
    });

    step("values that cannot be are refused, all of them at once", async (kubectl) => {
      const wrong = INSTALLATION.replace("Nftables", "Carrier pigeon").replace("OpenSource", "Gold");
      const said = await kubectl.refused("apply", "-f", kubectl.file("wrong.yaml", wrong));
      expect(said).toContain('The Installation "default" is invalid:');
      expect(said).toContain('spec.variant: Unsupported value: "Gold": supported values: "OpenSource"');
      expect(said).toContain(
        'spec.vendorNetwork.linuxDataplane: Unsupported value: "Carrier pigeon": supported values: "BPF", "Nftables"',
      );
    });

    step("a misspelt field is refused before anything is stored", async (kubectl) => {
      const misspelt = kubectl.file("misspelt.yaml", INSTALLATION.replace("linuxDataplane", "linuxDataPlane"));
      const said = await kubectl.refused("create", "-f", misspelt);
      // Older clients check against the server's schema themselves; newer ones ask the server to.
      expect(said).toMatch(/unknown field "(spec\.vendorNetwork\.)?linuxDataPlane"/);
      expect(await kubectl.ok("get", "installations", "-o", "name")).toBe("");
      await kubectl.ok("create", "--validate=false", "-f", misspelt, "--dry-run=server");
    });

    step(
      "or warned about, when asked so",
      async (kubectl) => {
        const misspelt = kubectl.file("misspelt.yaml", INSTALLATION.replace("linuxDataplane", "linuxDataPlane"));
        const warned = await kubectl.run(["create", "--validate=warn", "--dry-run=server", "-f", misspelt]);
        expect(warned).toMatchObject({
          code: 0,
          stderr: 'Warning: unknown field "spec.vendorNetwork.linuxDataPlane"\n',
        });
      },
      { since: 25, what: "--validate=warn" },
    );

    step("an Installation is created from its file", async (kubectl) => {
      const file = kubectl.file("installation.yaml", INSTALLATION);
      expect(await kubectl.ok("create", "-f", file)).toBe("installation.operator.vendor.io/default created\n");
      expect(await kubectl.refused("create", "-f", file)).toContain(
        'installations.operator.vendor.io "default" already exists',
      );
    });

    step("its columns show what the operator reports", async (kubectl) => {
      const live = JSON.parse(await kubectl.ok("get", "installation", "default", "-o", "json"));
      const reported = kubectl.file("reported.json", JSON.stringify({ ...live, status: STATUS }));
      const path = "/apis/operator.vendor.io/v1/installations/default/status";
      await kubectl.ok("replace", "--raw", path, "-f", reported);
      const wide = await kubectl.ok("get", "installations", "-o", "wide");
      expect(wide).toMatch(
        /^NAME +DATAPLANE +VERSION +READY +PROGRESSING +DEGRADED +AGE +MESSAGE +VARIANT +MTU\ndefault +Nftables +v3\.31\.3 +True +False +False +\d+s +all of it works +OpenSource +1450\n$/,
      );
      expect(await kubectl.ok("get", "installations")).not.toContain("VARIANT");
      expect(await kubectl.ok("wait", "--for=condition=Ready", "installation/default", "--timeout=5s")).toBe(
        "installation.operator.vendor.io/default condition met\n",
      );
    });

    step("the switch to eBPF is one merge patch", async (kubectl) => {
      const patch = { spec: { vendorNetwork: { linuxDataplane: "BPF", hostPorts: null } } };
      const switched = await kubectl.ok(
        "patch",
        "installation",
        "default",
        "--type=merge",
        "-p",
        JSON.stringify(patch),
      );
      expect(switched).toBe("installation.operator.vendor.io/default patched\n");
      const { spec, metadata, status } = JSON.parse(await kubectl.ok("get", "installation", "default", "-o", "json"));
      expect(spec.vendorNetwork).toEqual({ linuxDataplane: "BPF", ipPools: [{ cidr: "10.244.0.0/16" }] });
      expect(metadata.generation).toBe(2);
      expect(status.version).toBe("v3.31.3");
      const again = await kubectl.ok("patch", "installation", "default", "--type=merge", "-p", JSON.stringify(patch));
      expect(again).toBe("installation.operator.vendor.io/default patched (no change)\n");
    });

    step("a JSON patch works too, a strategic one is for Kubernetes' own kinds", async (kubectl) => {
      const operations = JSON.stringify([{ op: "test", path: "/spec/variant", value: "OpenSource" }]);
      await kubectl.ok("patch", "installation", "default", "--type=json", "-p", operations);
      const said = await kubectl.refused("patch", "installation", "default", "-p", '{"spec":{"registry":"r.example"}}');
      expect(said).toContain("the body of the request was in an unknown format - accepted media types include:");
    });

    step("describe shows it all", async (kubectl) => {
      const described = await kubectl.ok("describe", "installation", "default");
      expect(described).toMatch(/^Name: +default$/m);
      expect(described).toMatch(/^API Version: +operator\.vendor\.io\/v1$/m);
      expect(described).toMatch(/^ +Linux Dataplane: +BPF$/m);
      expect(described).toMatch(/^Events: +<none>$/m);
    });
  },
};
