import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

/** Two teams apply the same object: the platform team wrote it, the security team has an opinion about one field. */
const PLATFORM = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shared
spec:
  replicas: 1
  selector:
    matchLabels: { app: shared }
  template:
    metadata:
      labels: { app: shared }
    spec:
      containers:
        - name: web
          image: shop/web:1
          env:
            - { name: MODE, value: fast }
`;

const SECURITY = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shared
spec:
  selector:
    matchLabels: { app: shared }
  template:
    metadata:
      labels: { app: shared }
    spec:
      containers:
        - name: web
          image: shop/web:1-hardened
          env:
            - { name: AUDIT, value: "on" }
`;

const by = (manager: string, ...args: string[]) => ["apply", "--server-side", `--field-manager=${manager}`, ...args];

export const fieldOwners: Chapter = {
  title: "two teams own fields of one object",
  steps(step) {
    step("the first team applies", async (kubectl) => {
      const file = kubectl.file("platform.yaml", PLATFORM);
      expect(await kubectl.ok(...by("platform", "-f", file))).toBe("deployment.apps/shared serverside-applied\n");
    });

    step("the second is refused where they disagree, told with whom, and nothing changes", async (kubectl) => {
      const { code, stderr } = await kubectl.run(by("security", "-f", kubectl.file("security.yaml", SECURITY)));
      expect(code).toBe(1);
      expect(stderr).toContain(
        'error: Apply failed with 1 conflict: conflict with "platform": .spec.template.spec.containers[name="web"].image\n' +
          "Please review the fields above--they currently have other managers.",
      );
      expect(stderr).toContain("--force-conflicts");
      const image = "jsonpath={.spec.template.spec.containers[0].image}";
      expect(await kubectl.ok("get", "deployment", "shared", "-o", image)).toBe("shop/web:1");
    });

    step("it may take the field by force; what it did not name stays the first team's", async (kubectl) => {
      const file = kubectl.file("security.yaml", SECURITY);
      await kubectl.ok(...by("security", "--force-conflicts", "-f", file));
      const { spec, metadata } = JSON.parse(await kubectl.ok(...showing("deployment", "shared", kubectl.version)));
      const [container] = spec.template.spec.containers;
      expect(container).toMatchObject({
        image: "shop/web:1-hardened",
        env: [
          { name: "MODE", value: "fast" },
          { name: "AUDIT", value: "on" },
        ],
      });
      const owned = Object.fromEntries(
        metadata.managedFields
          .filter(({ operation }: { operation: string }) => operation === "Apply")
          .map(({ manager, fieldsV1 }: { manager: string; fieldsV1: unknown }) => [manager, JSON.stringify(fieldsV1)]),
      );
      expect(owned["security"]).toContain('"f:image"');
      expect(owned["platform"]).not.toContain('"f:image"');
      expect(owned["platform"]).toContain('"f:replicas"');
    });

    step("what a team no longer names is removed when nobody else named it", async (kubectl) => {
      const file = kubectl.file("security.yaml", SECURITY.replace(/ +env:\n.*AUDIT.*\n/, ""));
      await kubectl.ok(...by("security", "-f", file));
      const names = "jsonpath={.spec.template.spec.containers[0].env[*].name}";
      expect(await kubectl.ok("get", "deployment", "shared", "-o", names)).toBe("MODE");
    });

    step("diff tells what applying would change, and who would be in the way", async (kubectl) => {
      const file = kubectl.file("platform.yaml", PLATFORM.replace("replicas: 1", "replicas: 4"));
      const forced = ["diff", "--server-side", "--field-manager=platform", "--force-conflicts", "-f", file];
      const { code, stdout } = await kubectl.run(forced);
      expect(code).toBe(1);
      expect(stdout).toMatch(/^- {2}replicas: 1\n\+ {2}replicas: 4$/m);
      expect(stdout).toMatch(/^- +(- )?image: shop\/web:1-hardened\n\+ +(- )?image: shop\/web:1$/m);
      const mild = await kubectl.run(["diff", "--server-side", "--field-manager=platform", "-f", file]);
      expect(mild.code).toBeGreaterThan(1);
      expect(mild.stderr).toContain('conflict with "security": .spec.template.spec.containers[name="web"].image');
      expect(await kubectl.ok("get", "deployment", "shared", "-o", "jsonpath={.spec.replicas}")).toBe("1");
    });
  },
};

/** Newer clients hide who owns what unless asked. */
function showing(kind: string, name: string, version: string): string[] {
  const shown = Number(version.split(".")[1]) >= 21 ? ["--show-managed-fields"] : [];
  return ["get", kind, name, "-o", "json", ...shown];
}
