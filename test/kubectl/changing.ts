import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

export const changing: Chapter = {
  title: "changing one object in every way",
  steps(step) {
    step("labels are put on, kept, replaced and taken off", async (kubectl) => {
      await kubectl.ok("create", "deployment", "changed", "--image=shop/web:1");
      const label = (...args: string[]) => kubectl.ok("label", "deployment/changed", ...args);
      expect(await label("tier=front")).toBe("deployment.apps/changed labeled\n");
      expect(await kubectl.refused("label", "deployment/changed", "tier=back")).toContain(
        "'tier' already has a value (front), and --overwrite is false",
      );
      await label("tier=back", "--overwrite");
      expect(await kubectl.ok("get", "deployments", "-l", "tier=back", "-L", "tier")).toMatch(/TIER\nchanged .*back\n/);
      await label("tier-");
      expect(await kubectl.ok("get", "deployments", "-l", "tier", "-o", "name")).toBe("");
      expect(await kubectl.refused("label", "deployment/changed", "tier=not/valid")).toContain("tier");
    });

    step("annotations likewise", async (kubectl) => {
      const annotate = (...args: string[]) => kubectl.ok("annotate", "deployment/changed", ...args);
      const note = () => kubectl.ok("get", "deployment", "changed", "-o", "jsonpath={.metadata.annotations.note}");
      expect(await annotate("note=a longer text, with: anything")).toBe("deployment.apps/changed annotated\n");
      expect(await note()).toBe("a longer text, with: anything");
      await annotate("note-");
      expect(await note()).toBe("");
    });

    step("a strategic merge patch merges lists by their keys", async (kubectl) => {
      const patch = { spec: { template: { spec: { containers: [{ name: "side", image: "shop/side:1" }] } } } };
      const patched = await kubectl.ok("patch", "deployment", "changed", "-p", JSON.stringify(patch));
      expect(patched).toBe("deployment.apps/changed patched\n");
      const images = ["get", "deployment", "changed", "-o", "jsonpath={.spec.template.spec.containers[*].name}"];
      expect((await kubectl.ok(...images)).split(" ").sort()).toEqual(["side", "web"]);
    });

    step("a merge patch replaces them", async (kubectl) => {
      const patch = { spec: { template: { spec: { containers: [{ name: "web", image: "shop/web:2" }] } } } };
      await kubectl.ok("patch", "deployment", "changed", "--type=merge", "-p", JSON.stringify(patch));
      const { containers } = JSON.parse(
        await kubectl.ok("get", "deployment", "changed", "-o", "jsonpath={.spec.template.spec}"),
      );
      expect(containers).toMatchObject([{ name: "web", image: "shop/web:2" }]);
    });

    step("a JSON patch does exactly what it says, or nothing", async (kubectl) => {
      const patch = (...operations: object[]) => [
        "patch",
        "deployment",
        "changed",
        "--type=json",
        "-p",
        JSON.stringify(operations),
      ];
      const image = { path: "/spec/template/spec/containers/0/image", value: "shop/web:3" };
      await kubectl.ok(...patch({ op: "replace", ...image }));
      expect(await kubectl.ok(...patch({ op: "test", ...image }))).toBe(
        "deployment.apps/changed patched (no change)\n",
      );
      const refused = patch({ op: "remove", path: "/spec/replicas" }, { op: "test", ...image, value: "shop/web:9" });
      expect(await kubectl.refused(...refused)).toMatch(/request is invalid/);
      expect(await kubectl.ok("get", "deployment", "changed", "-o", "jsonpath={.spec.replicas}")).toBe("1");
    });

    step("edit opens it in an editor", async (kubectl) => {
      const edit = (script: string) =>
        kubectl.run(["edit", "deployment", "changed"], { env: { KUBE_EDITOR: `sed -i -e ${script}` } });
      expect(await edit("s/replicas:.*/replicas:\\ 2/")).toMatchObject({
        code: 0,
        stdout: "deployment.apps/changed edited\n",
      });
      expect(await kubectl.ok("get", "deployment", "changed", "-o", "jsonpath={.spec.replicas}")).toBe("2");
      expect(await edit("s/nothing/at-all/")).toMatchObject({ code: 0, stderr: "Edit cancelled, no changes made.\n" });
    });

    step("replace writes the whole object, unless somebody wrote meanwhile", async (kubectl) => {
      const live = JSON.parse(await kubectl.ok("get", "deployment", "changed", "-o", "json"));
      live.spec.replicas = 3;
      const file = kubectl.file("replace.json", JSON.stringify(live));
      expect(await kubectl.ok("replace", "-f", file)).toBe("deployment.apps/changed replaced\n");
      expect(await kubectl.refused("replace", "-f", file)).toContain(
        'Operation cannot be fulfilled on deployments.apps "changed": the object has been modified; please apply your changes to the latest version and try again',
      );
    });

    step("replace --force deletes and creates", async (kubectl) => {
      const uid = () => kubectl.ok("get", "configmap", "forced", "-o", "jsonpath={.metadata.uid}");
      await kubectl.ok("create", "configmap", "forced", "--from-literal=a=1");
      const before = await uid();
      const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "forced" }, data: { a: "2" } };
      const file = kubectl.file("forced.json", JSON.stringify(manifest));
      expect(await kubectl.ok("replace", "--force", "-f", file)).toMatch(
        /forced" deleted.*\nconfigmap\/forced replaced\n/,
      );
      expect(await uid()).not.toBe(before);
    });

    step(
      "status can be written by name",
      async (kubectl) => {
        const patch = '{"status":{"observedGeneration":0}}';
        const args = ["patch", "deployment", "changed", "--subresource=status", "-p", patch];
        expect(await kubectl.ok(...args)).toBe("deployment.apps/changed patched\n");
        const scale = await kubectl.ok("get", "deployment", "changed", "--subresource=scale", "-o", "json");
        expect(JSON.parse(scale)).toMatchObject({ kind: "Scale", spec: { replicas: 3 } });
      },
      { since: 24, what: "--subresource" },
    );
  },
};
