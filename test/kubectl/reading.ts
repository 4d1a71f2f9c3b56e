import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

const FRUIT = { apple: "3", banana: "1", cherry: "2" };

export const reading: Chapter = {
  title: "reading lists in every shape",
  steps(step) {
    step("names, JSON, YAML, paths and columns of one's own", async (kubectl) => {
      await kubectl.ok("create", "namespace", "reading");
      for (const [name, weight] of Object.entries(FRUIT)) {
        await kubectl.ok("-n", "reading", "create", "configmap", name, `--from-literal=weight=${weight}`);
        await kubectl.ok("-n", "reading", "label", "configmap", name, "kind=fruit", `heavy=${Number(weight) > 1}`);
      }
      const get = (...args: string[]) => kubectl.ok("-n", "reading", "get", "configmaps", "-l", "kind=fruit", ...args);
      expect(await get("-o", "name")).toBe("configmap/apple\nconfigmap/banana\nconfigmap/cherry\n");
      expect(JSON.parse(await get("-o", "json"))).toMatchObject({
        kind: "List",
        items: [{ kind: "ConfigMap", metadata: { name: "apple" } }, {}, {}],
      });
      expect(await get("-o", "yaml")).toMatch(
        /^apiVersion: v1\nitems:\n- apiVersion: v1\n {2}data:\n {4}weight: "3"\n/,
      );
      expect(await get("-o", "jsonpath={.items[?(@.data.weight=='2')].metadata.name}")).toBe("cherry");
      expect(await get("-o", "custom-columns=FRUIT:.metadata.name,WEIGHT:.data.weight", "--no-headers")).toBe(
        "apple    3\nbanana   1\ncherry   2\n",
      );
      expect(await get("-o", "go-template={{len .items}}")).toBe("3");
    });

    step("sorted", async (kubectl) => {
      const sorted = ["get", "configmaps", "-n", "reading", "-l", "kind=fruit", "--sort-by=.data.weight", "-o", "name"];
      expect(await kubectl.ok(...sorted)).toBe("configmap/banana\nconfigmap/cherry\nconfigmap/apple\n");
      const table = ["get", "configmaps", "-n", "reading", "-l", "kind=fruit", "--sort-by=.data.weight"];
      expect((await kubectl.ok(...table)).split("\n").map((line) => line.split(" ")[0])).toEqual([
        "NAME",
        "banana",
        "cherry",
        "apple",
        "",
      ]);
    });

    step("selected by labels", async (kubectl) => {
      const names = (selector: string) =>
        kubectl.ok("-n", "reading", "get", "configmaps", "-l", selector, "-o", "name");
      expect(await names("heavy=true")).toBe("configmap/apple\nconfigmap/cherry\n");
      expect(await names("heavy!=true,kind")).toBe("configmap/banana\n");
      expect(await names("kind in (fruit,tool),!worn")).toBe("configmap/apple\nconfigmap/banana\nconfigmap/cherry\n");
      expect(await kubectl.ok("-n", "reading", "get", "configmaps", "-l", "heavy", "-L", "heavy")).toMatch(
        /^NAME +DATA +AGE +HEAVY\napple +1 +\d+s +true\n/,
      );
    });

    step("selected by fields", async (kubectl) => {
      const named = ["get", "configmaps", "-A", "--field-selector=metadata.name=banana", "--no-headers"];
      expect(await kubectl.ok(...named)).toMatch(/^reading +banana +1 +\d+s\n$/);
      const onControlPlane = "--field-selector=spec.nodeName=story-control-plane,status.phase=Running";
      expect(await kubectl.ok("get", "pods", "-A", onControlPlane, "-o", "name")).toMatch(/^pod\/kube-proxy-\w+$/m);
      const said = await kubectl.refused("get", "pods", "--field-selector=spec.colour=blue");
      expect(said).toContain("field label not supported: spec.colour");
    });

    step("page by page", async (kubectl) => {
      const paged = await kubectl.ok(
        "-n",
        "reading",
        "get",
        "configmaps",
        "-l",
        "kind=fruit",
        "--chunk-size=1",
        "-o",
        "name",
      );
      expect(paged).toBe("configmap/apple\nconfigmap/banana\nconfigmap/cherry\n");
    });

    step("watched: every change is a line", async (kubectl) => {
      await kubectl.ok("-n", "reading", "label", "configmap", "banana", "watched=from-the-start");
      const watch = kubectl.start("-n", "reading", "get", "configmaps", "-l", "watched", "-w", "-L", "watched");
      await watch.line(/banana +1 +\d+s +from-the-start/);
      await kubectl.ok("-n", "reading", "create", "configmap", "durian");
      await kubectl.ok("-n", "reading", "label", "configmap", "durian", "watched=first");
      expect(await watch.line(/durian +0 +\d+s +first/)).toBeTruthy();
      await kubectl.ok("-n", "reading", "label", "configmap", "durian", "watched=second", "--overwrite");
      expect(await watch.line(/durian +0 +\d+s +second/)).toBeTruthy();
      await watch.stop();
    });

    step("watched as events: added, changed, and gone from what was asked for", async (kubectl) => {
      await kubectl.ok("-n", "reading", "label", "configmap", "banana", "seen=from-the-start");
      const watch = kubectl.start("-n", "reading", "get", "configmaps", "-l", "seen", "-w", "--output-watch-events");
      await watch.line(/ADDED +banana/);
      const label = (...args: string[]) => kubectl.ok("-n", "reading", "label", "configmap", "apple", ...args);
      await label("seen=yes");
      await watch.line(/ADDED +apple/);
      await label("seen=still", "--overwrite");
      await watch.line(/MODIFIED +apple/);
      await label("seen-");
      await watch.line(/DELETED +apple/);
      await watch.stop();
    });
  },
};
