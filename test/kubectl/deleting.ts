import { expect } from "vitest";
import type { Kubectl } from "../support/kubectl.ts";
import type { Chapter } from "./scenario.ts";

const NS = "deleting";

async function deployment(kubectl: Kubectl, name: string): Promise<void> {
  await kubectl.ok("-n", NS, "create", "deployment", name, "--image=shop/web:1");
  await kubectl.ok("-n", NS, "rollout", "status", `deployment/${name}`, "--timeout=20s");
}

const dependents = (name: string) => ["-n", NS, "get", "replicasets,pods", "-l", `app=${name}`, "-o", "name"];

const hold = (finalizers: string[] | null) => JSON.stringify({ metadata: { finalizers } });

export const deleting: Chapter = {
  title: "deleting, and what becomes of the rest",
  steps(step) {
    step("background: the owner goes at once, what it owns follows", async (kubectl) => {
      await kubectl.ok("create", "namespace", NS);
      await deployment(kubectl, "background");
      expect(await kubectl.ok(...dependents("background"))).toMatch(/^replicaset.*\npod.*\n$/);
      const deleted = await kubectl.ok("-n", NS, "delete", "deployment", "background", "--cascade=background");
      expect(deleted).toMatch(/^deployment\.apps "background" deleted/);
      await kubectl.until(dependents("background"), /^$/);
    });

    step("foreground: the owner stays until everything it owns is gone", async (kubectl) => {
      await deployment(kubectl, "foreground");
      const pod = (await kubectl.ok("-n", NS, "get", "pods", "-l", "app=foreground", "-o", "name")).trim();
      await kubectl.ok("-n", NS, "patch", pod, "-p", hold(["story.example/hold"]));
      await kubectl.ok("-n", NS, "delete", "deployment", "foreground", "--cascade=foreground", "--wait=false");
      await kubectl.until(["-n", NS, "get", pod, "-o", "jsonpath={.metadata.deletionTimestamp}"], /Z$/);
      const { metadata } = JSON.parse(await kubectl.ok("-n", NS, "get", "deployment", "foreground", "-o", "json"));
      expect(metadata.finalizers).toEqual(["foregroundDeletion"]);
      expect(metadata.deletionTimestamp).toBeTruthy();
      await kubectl.ok("-n", NS, "patch", pod, "-p", hold(null));
      await kubectl.until(["-n", NS, "get", "deployment", "foreground"], /NotFound/);
      expect(await kubectl.ok(...dependents("foreground"))).toBe("");
    });

    step("orphan: what it owned stays, and belongs to nobody", async (kubectl) => {
      await deployment(kubectl, "orphan");
      const before = await kubectl.ok(...dependents("orphan"));
      await kubectl.ok("-n", NS, "delete", "deployment", "orphan", "--cascade=orphan");
      expect(await kubectl.ok(...dependents("orphan"))).toBe(before);
      const owners = [
        "-n",
        NS,
        "get",
        "replicasets",
        "-l",
        "app=orphan",
        "-o",
        "jsonpath={.items[*].metadata.ownerReferences}",
      ];
      expect(await kubectl.ok(...owners)).toBe("");
      // A new owner with the same selector adopts it: this is how a controller is replaced without touching its pods.
      await deployment(kubectl, "orphan");
      expect(await kubectl.ok(...dependents("orphan"))).toBe(before);
    });

    step("a finalizer keeps an object until it is taken off; wait --for=delete sees it go", async (kubectl) => {
      await kubectl.ok("-n", NS, "create", "configmap", "held");
      await kubectl.ok("-n", NS, "patch", "configmap", "held", "--type=merge", "-p", hold(["story.example/hold"]));
      await kubectl.ok("-n", NS, "delete", "configmap", "held", "--wait=false");
      const timedOut = await kubectl.refused("-n", NS, "wait", "--for=delete", "configmap/held", "--timeout=1s");
      expect(timedOut).toContain("timed out waiting for the condition on configmaps/held");
      // Told of its requests, so that the object goes only once kubectl watches it: one that is gone already is no wait.
      const waiting = kubectl.start("-n", NS, "wait", "--for=delete", "configmap/held", "--timeout=20s", "-v=6");
      await waiting.line(/watch=true/);
      await kubectl.ok("-n", NS, "patch", "configmap", "held", "--type=merge", "-p", hold(null));
      expect(await waiting.ended).toMatchObject({ code: 0 });
      expect(await kubectl.refused("-n", NS, "get", "configmap", "held")).toContain("NotFound");
    });

    step("a selector deletes many, a second time nothing", async (kubectl) => {
      for (const name of ["a", "b"]) {
        await kubectl.ok("-n", NS, "create", "configmap", name);
        await kubectl.ok("-n", NS, "label", "configmap", name, "batch=yes");
      }
      const all = await kubectl.ok("-n", NS, "delete", "configmaps", "-l", "batch=yes");
      expect(all).toMatch(/^configmap "a" deleted.*\nconfigmap "b" deleted.*\n$/);
      expect(await kubectl.ok("-n", NS, "delete", "configmaps", "-l", "batch=yes")).toBe("No resources found\n");
      expect(await kubectl.ok("-n", NS, "delete", "configmap", "a", "--ignore-not-found")).toBe("");
      expect(await kubectl.refused("-n", NS, "delete", "configmap", "a")).toBe(
        'Error from server (NotFound): configmaps "a" not found\n',
      );
    });

    step("a pod with a grace period terminates, and one deleted by force is gone", async (kubectl) => {
      await kubectl.ok("-n", NS, "run", "gone", "--image=shop/web:1");
      await kubectl.ok("-n", NS, "wait", "--for=condition=Ready", "pod/gone", "--timeout=20s");
      const forced = await kubectl.run(["-n", NS, "delete", "pod", "gone", "--grace-period=0", "--force"]);
      expect(forced.code).toBe(0);
      expect(forced.stderr).toMatch(/^warning: Immediate deletion/i);
      expect(await kubectl.refused("-n", NS, "get", "pod", "gone")).toContain("NotFound");
    });

    step("a namespace takes everything in it along", async (kubectl) => {
      expect(await kubectl.ok("delete", "namespace", NS)).toBe(`namespace "${NS}" deleted\n`);
      expect(await kubectl.refused("get", "namespace", NS)).toContain("NotFound");
      expect(await kubectl.ok("-n", NS, "get", "all,configmaps,secrets", "-o", "name")).toBe("");
      expect(await kubectl.refused("-n", NS, "create", "configmap", "late")).toContain(`namespaces "${NS}" not found`);
    });
  },
};
