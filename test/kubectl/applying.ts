import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

const configMap = (name: string, data: Record<string, string>, set = "none") => `
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}
  labels: { set: ${set} }
data: ${JSON.stringify(data)}
`;

const web = (lines: string[]) => `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: applied
spec:
  selector:
    matchLabels: { app: applied }
  template:
    metadata:
      labels: { app: applied }
    spec:
      containers:
        - name: web
          image: shop/web:1
${lines.map((line) => `          ${line}\n`).join("")}`;

export const applying: Chapter = {
  title: "applying files",
  steps(step) {
    step("apply creates, configures, and leaves alone what is already so", async (kubectl) => {
      const apply = (data: Record<string, string>) =>
        kubectl.ok("apply", "-f", kubectl.file("settings.yaml", configMap("settings", data)));
      expect(await apply({ a: "1", b: "2" })).toBe("configmap/settings created\n");
      expect(await apply({ a: "1", b: "2" })).toBe("configmap/settings unchanged\n");
      expect(await apply({ a: "1", b: "3" })).toBe("configmap/settings configured\n");
    });

    step("what was applied last can be looked up", async (kubectl) => {
      expect(await kubectl.ok("apply", "view-last-applied", "configmap/settings")).toContain('b: "3"');
    });

    step("a field taken out of the file goes; what somebody else added stays", async (kubectl) => {
      const data = () => kubectl.ok("get", "configmap", "settings", "-o", "jsonpath={.data}");
      await kubectl.ok("patch", "configmap", "settings", "-p", '{"data":{"theirs":"kept"}}');
      await kubectl.ok("apply", "-f", kubectl.file("settings.yaml", configMap("settings", { a: "1" })));
      expect(JSON.parse(await data())).toEqual({ a: "1", theirs: "kept" });
    });

    step("so it is inside lists: containers, variables and ports go by their keys", async (kubectl) => {
      const apply = (...lines: string[]) => kubectl.ok("apply", "-f", kubectl.file("web.yaml", web(lines)));
      await apply("env: [{ name: A, value: one }, { name: B, value: two }]", "ports: [{ containerPort: 80 }]");
      await kubectl.ok("set", "env", "deployment/applied", "THEIRS=kept");
      expect(await apply("env: [{ name: B, value: deux }]")).toBe("deployment.apps/applied configured\n");
      const [container] = JSON.parse(
        await kubectl.ok("get", "deployment", "applied", "-o", "jsonpath={.spec.template.spec.containers}"),
      );
      expect(container.env).toEqual(
        expect.arrayContaining([
          { name: "B", value: "deux" },
          { name: "THEIRS", value: "kept" },
        ]),
      );
      expect(container.env).toHaveLength(2);
      expect(container).not.toHaveProperty("ports");
    });

    step("diff exits with 1 where something would change and 0 where not", async (kubectl) => {
      const same = kubectl.file("same.yaml", configMap("settings", { a: "1" }));
      const other = kubectl.file("other.yaml", configMap("settings", { a: "2" }));
      expect(await kubectl.run(["diff", "-f", same])).toMatchObject({ code: 0, stdout: "" });
      const { code, stdout } = await kubectl.run(["diff", "-f", other]);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^- {2}a: "1"\n\+ {2}a: "2"$/m);
      const fresh = await kubectl.run(["diff", "-f", kubectl.file("fresh.yaml", configMap("fresh", { a: "1" }))]);
      expect(fresh).toMatchObject({ code: 1, stdout: expect.stringContaining("+  name: fresh\n") });
      expect(await kubectl.refused("get", "configmap", "fresh")).toContain("NotFound");
    });

    step("the server can compute the difference too", async (kubectl) => {
      const file = (value: string) => kubectl.file("served.yaml", configMap("served", { a: value }));
      await kubectl.ok("apply", "--server-side", "-f", file("1"));
      expect(await kubectl.run(["diff", "--server-side", "-f", file("1")])).toMatchObject({ code: 0, stdout: "" });
      const { code, stdout } = await kubectl.run(["diff", "--server-side", "-f", file("2")]);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^- {2}a: "1"\n\+ {2}a: "2"$/m);
    });

    step("a dry run says what it would do, here or on the server, and does nothing", async (kubectl) => {
      const file = kubectl.file("dry.yaml", configMap("dry", { a: "1" }));
      expect(await kubectl.ok("apply", "-f", file, "--dry-run=client")).toBe("configmap/dry created (dry run)\n");
      expect(await kubectl.ok("apply", "-f", file, "--dry-run=server")).toBe(
        "configmap/dry created (server dry run)\n",
      );
      const created = await kubectl.ok("create", "deployment", "dry", "--image=a", "--dry-run=server", "-o", "yaml");
      expect(created).toMatch(/^ {2}uid: /m);
      expect(created).toContain("terminationGracePeriodSeconds: 30");
      expect(await kubectl.refused("get", "configmap/dry", "deployment/dry")).toContain('configmaps "dry" not found');
    });

    step("apply --prune removes what is no longer in the files", async (kubectl) => {
      const parts = ["keep", "drop"].map((name) => configMap(name, { a: "1" }, "pruned"));
      await kubectl.ok("apply", "-f", kubectl.file("both.yaml", parts.join("---")));
      const listOf = Number(kubectl.version.split(".")[1]) >= 26 ? "--prune-allowlist" : "--prune-whitelist";
      const one = kubectl.file("one.yaml", parts[0]!);
      const pruned = await kubectl.ok("apply", "--prune", "-l", "set=pruned", `${listOf}=core/v1/ConfigMap`, "-f", one);
      expect(pruned).toBe("configmap/keep unchanged\nconfigmap/drop pruned\n");
      expect(await kubectl.ok("get", "configmaps", "-l", "set=pruned", "-o", "name")).toBe("configmap/keep\n");
    });

    step("a file with several problems names each", async (kubectl) => {
      const mixed = `${configMap("fine", { a: "1" })}---\napiVersion: shop/v1\nkind: Sandwich\nmetadata: { name: blt }\n`;
      const said = await kubectl.refused("apply", "-f", kubectl.file("mixed.yaml", mixed));
      expect(said).toContain('no matches for kind "Sandwich" in version "shop/v1"');
      const bad = web([]).replace("app: applied }\n  template", "app: other }\n  template").replace("applied", "bad");
      expect(await kubectl.refused("create", "-f", kubectl.file("bad.yaml", bad))).toContain(
        "`selector` does not match template `labels`",
      );
    });
  },
};
