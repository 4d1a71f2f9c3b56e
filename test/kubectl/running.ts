import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

export const running: Chapter = {
  title: "running pods, jobs and services",
  steps(step) {
    step("run starts a pod, and wait sees it ready", async (kubectl) => {
      await kubectl.ok("create", "namespace", "running");
      expect(await kubectl.ok("-n", "running", "run", "one", "--image=shop/one:1", "--port=8080")).toBe(
        "pod/one created\n",
      );
      const ready = ["-n", "running", "wait", "--for=condition=Ready", "pod/one", "--timeout=20s"];
      expect(await kubectl.ok(...ready)).toBe("pod/one condition met\n");
      expect(await kubectl.ok("-n", "running", "get", "pod", "one", "-o", "wide")).toMatch(
        /^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES\none +1\/1 +Running +0 +\d+s +10\.244\.\d+\.\d+ +story-worker-\d +<none> +<none>\n$/,
      );
    });

    step(
      "wait can look at any field",
      async (kubectl) => {
        const phase = ["-n", "running", "wait", "--for=jsonpath={.status.phase}=Running", "pod/one", "--timeout=20s"];
        expect(await kubectl.ok(...phase)).toBe("pod/one condition met\n");
      },
      { since: 23, what: "wait --for=jsonpath" },
    );

    step("get -w shows a pod's life, line by line", async (kubectl) => {
      const watch = kubectl.start("-n", "running", "get", "pods", "-w");
      await watch.line(/^one +1\/1 +Running /);
      await kubectl.ok("-n", "running", "run", "seen", "--image=shop/one:1");
      await watch.line(/^seen +0\/1 +Pending +0 /);
      await watch.line(/^seen +1\/1 +Running +0 /);
      await kubectl.ok("-n", "running", "delete", "pod", "seen", "--grace-period=1");
      await watch.line(/^seen +1\/1 +Terminating +0 /);
      await watch.stop();
    });

    step(
      "wait can wait for what is not there yet",
      async (kubectl) => {
        const waiting = kubectl.start("-n", "running", "wait", "--for=create", "configmap/soon", "--timeout=20s");
        await kubectl.ok("-n", "running", "create", "configmap", "soon");
        expect(await waiting.ended).toMatchObject({ code: 0, stdout: "configmap/soon condition met\n" });
      },
      { since: 31, what: "wait --for=create" },
    );

    step("describe tells its life, events included", async (kubectl) => {
      const described = await kubectl.until(["-n", "running", "describe", "pod", "one"], /Started container one/);
      expect(described).toMatch(/^Name: +one$/m);
      expect(described).toMatch(/^Node: +story-worker-\d\/172\.18\.0\.\d$/m);
      expect(described).toMatch(/^ +Image: +shop\/one:1$/m);
      expect(described).toMatch(/^QoS Class: +BestEffort$/m);
      expect(described).toMatch(
        /^ +Normal +Scheduled .* default-scheduler +Successfully assigned running\/one to story-/m,
      );
    });

    step("so does get events, and they can be selected", async (kubectl) => {
      const about = ["--field-selector=involvedObject.name=one,reason=Scheduled", "--sort-by=.lastTimestamp"];
      expect(await kubectl.ok("-n", "running", "get", "events", ...about)).toMatch(
        /^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n\d+s +Normal +Scheduled +pod\/one +Successfully assigned/,
      );
    });

    step(
      "and the events command, of one object",
      async (kubectl) => {
        expect(await kubectl.ok("events", "-n", "running", "--for=pod/one")).toMatch(
          /^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n(.*\n)*\d+s +Normal +Started +Pod\/one +Started container one\n/,
        );
      },
      { since: 26, what: "events" },
    );

    step("logs are what the node kept; times come when asked for", async (kubectl) => {
      const logs = (...args: string[]) => kubectl.ok("-n", "running", "logs", "one", ...args);
      expect(await logs()).toBe(
        "simulated node: one (shop/one:1) is reported as running, but no process runs\nready\n",
      );
      expect(await logs("--tail=1")).toBe("ready\n");
      expect(await logs("--tail=1", "--timestamps")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z ready\n$/);
      expect(await kubectl.refused("-n", "running", "logs", "one", "-c", "two")).toContain(
        "container two is not valid for pod one",
      );
    });

    step("logs -f ends with the pod", async (kubectl) => {
      await kubectl.ok("-n", "running", "run", "brief", "--image=shop/brief:1");
      await kubectl.ok("-n", "running", "wait", "--for=condition=Ready", "pod/brief", "--timeout=20s");
      const follow = kubectl.start("-n", "running", "logs", "-f", "brief");
      await follow.line(/^ready$/);
      await kubectl.ok("-n", "running", "delete", "pod", "brief", "--grace-period=1");
      expect((await follow.ended).code).toBe(0);
    });

    step(
      "a debugging container needs such nodes too",
      async (kubectl) => {
        expect(await kubectl.refused("-n", "running", "debug", "one", "--image=shop/tools:1")).toContain(
          "ephemeral containers are disabled for this cluster",
        );
      },
      { since: 21, what: "debug outside of alpha" },
    );

    step("exec, attach and port-forward need nodes that run something, and say so", async (kubectl) => {
      for (const args of [
        ["exec", "one", "--", "true"],
        ["attach", "one"],
        ["port-forward", "pod/one", ":8080"],
      ]) {
        expect(await kubectl.refused("-n", "running", ...args)).toContain(
          "needs real nodes; the nodes of this cluster are simulated",
        );
      }
    });

    step("expose gives it an address with endpoints behind it", async (kubectl) => {
      const expose = ["-n", "running", "expose", "pod", "one", "--port=80", "--target-port=8080", "--type=NodePort"];
      expect(await kubectl.ok(...expose)).toBe("service/one exposed\n");
      expect(await kubectl.ok("-n", "running", "get", "service", "one")).toMatch(
        /^NAME +TYPE .*\none +NodePort +10\.\d+\.\d+\.\d+ +<none> +80:3\d{4}\/TCP +\d+s\n$/,
      );
      await kubectl.until(["-n", "running", "get", "endpoints", "one"], /one +10\.244\.\d+\.\d+:8080/);
      const described = await kubectl.until(["-n", "running", "describe", "service", "one"], /^Endpoints: +10\.244/m);
      expect(described).toMatch(/^TargetPort: +8080\/TCP$/m);
      const slices = ["-n", "running", "get", "endpointslices", "-l", "kubernetes.io/service-name=one", "--no-headers"];
      await kubectl.until(slices, /^one-\w+ +IPv4 +8080 +10\.244\./);
    });

    step("a job runs to its end", async (kubectl) => {
      const job = {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "count", namespace: "running" },
        spec: {
          completions: 2,
          template: {
            metadata: { annotations: { "local.vendor.io/behaviour": "complete" } },
            spec: { restartPolicy: "Never", containers: [{ name: "count", image: "shop/count:1" }] },
          },
        },
      };
      await kubectl.ok("create", "-f", kubectl.file("job.json", JSON.stringify(job)));
      const complete = ["-n", "running", "wait", "--for=condition=Complete", "job/count", "--timeout=20s"];
      expect(await kubectl.ok(...complete)).toBe("job.batch/count condition met\n");
      expect(await kubectl.ok("-n", "running", "get", "pods", "-l", "job-name=count", "--no-headers")).toMatch(
        /^count-\w+ +0\/1 +Completed +0 .*\ncount-\w+ +0\/1 +Completed +0 .*\n$/,
      );
    });

    step(
      "secrets and config maps are made from words and files, and shown without giving secrets away",
      async (kubectl) => {
        const file = kubectl.file("motd.txt", "welcome\n");
        await kubectl.ok("-n", "running", "create", "configmap", "motd", `--from-file=${file}`);
        await kubectl.ok("-n", "running", "create", "secret", "generic", "door", "--from-literal=pin=1234");
        expect(await kubectl.ok("-n", "running", "get", "configmap", "motd", "-o", "jsonpath={.data.motd\\.txt}")).toBe(
          "welcome\n",
        );
        const described = await kubectl.ok("-n", "running", "describe", "secret", "door");
        expect(described).toMatch(/^pin: +4 bytes$/m);
        expect(described).not.toContain("1234");
      },
    );
  },
};
