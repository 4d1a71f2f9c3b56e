import { expect } from "vitest";
import type { Chapter } from "./scenario.ts";

const ROBOT = "--as=system:serviceaccount:access:robot";

export const access: Chapter = {
  title: "who may do what",
  steps(step) {
    step("the administrator may do everything", async (kubectl) => {
      expect(await kubectl.ok("auth", "can-i", "*", "*", "--all-namespaces")).toBe("yes\n");
    });

    step("an account may do nothing until it is given a role", async (kubectl) => {
      await kubectl.ok("create", "namespace", "access");
      expect(await kubectl.ok("-n", "access", "create", "serviceaccount", "robot")).toBe(
        "serviceaccount/robot created\n",
      );
      expect(await kubectl.run(["-n", "access", "auth", "can-i", "list", "pods", ROBOT])).toMatchObject({
        code: 1,
        stdout: "no\n",
      });
      expect(await kubectl.refused("-n", "access", "get", "pods", ROBOT)).toBe(
        'Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:access:robot" cannot list resource "pods" in API group "" in the namespace "access"\n',
      );
    });

    step("with a role it may do what the role says, where the binding says", async (kubectl) => {
      const role = ["-n", "access", "create", "role", "reader", "--verb=get,list", "--resource=pods,deployments.apps"];
      expect(await kubectl.ok(...role)).toBe("role.rbac.authorization.k8s.io/reader created\n");
      const binding = ["-n", "access", "create", "rolebinding", "robot-reads", "--role=reader"];
      expect(await kubectl.ok(...binding, "--serviceaccount=access:robot")).toBe(
        "rolebinding.rbac.authorization.k8s.io/robot-reads created\n",
      );
      const canI = async (...args: string[]) => (await kubectl.run(["auth", "can-i", ...args, ROBOT])).stdout.trim();
      expect(await canI("list", "pods", "-n", "access")).toBe("yes");
      expect(await canI("get", "deployments.apps/web", "-n", "access")).toBe("yes");
      expect(await canI("delete", "pods", "-n", "access")).toBe("no");
      expect(await canI("get", "pods", "--subresource=log", "-n", "access")).toBe("no");
      expect(await canI("list", "pods", "-n", "default")).toBe("no");
      expect(await kubectl.ok("-n", "access", "get", "pods", ROBOT)).toBe("");
    });

    step("can-i --list prints all of it", async (kubectl) => {
      const rules = await kubectl.ok("-n", "access", "auth", "can-i", "--list", ROBOT);
      expect(rules).toMatch(/^Resources +Non-Resource URLs +Resource Names +Verbs\n/);
      expect(rules).toMatch(/^pods +\[\] +\[\] +\[get list\]$/m);
      expect(rules).toMatch(/^deployments\.apps +\[\] +\[\] +\[get list\]$/m);
      expect(rules).toMatch(/^ +\[\/healthz\] +\[\] +\[get\]$/m);
    });

    step("nobody may give away more than they have", async (kubectl) => {
      const escalate = ["-n", "access", "create", "rolebinding", "mine", "--clusterrole=cluster-admin", "--user=me"];
      await kubectl.ok("-n", "access", "create", "role", "binder", "--verb=create", "--resource=rolebindings");
      await kubectl.ok("-n", "access", "create", "rolebinding", "binds", "--role=binder", "--user=climber");
      const said = await kubectl.refused(...escalate, "--as=climber");
      expect(said).toContain("is attempting to grant RBAC permissions not currently held");
    });

    step(
      "whoami",
      async (kubectl) => {
        expect(await kubectl.ok("auth", "whoami")).toMatch(/^ATTRIBUTE +VALUE\nUsername +kubernetes-admin\nGroups +\[/);
        expect(await kubectl.ok("auth", "whoami", ROBOT)).toMatch(
          /Username +system:serviceaccount:access:robot\nGroups +\[system:serviceaccounts system:serviceaccounts:access system:authenticated\]/,
        );
      },
      { since: 28, what: "auth whoami" },
    );

    step(
      "a token lets the robot in as itself",
      async (kubectl) => {
        const token = (await kubectl.ok("-n", "access", "create", "token", "robot", "--duration=10m")).trim();
        const cluster = JSON.parse(
          await kubectl.ok("config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster}"),
        );
        const authority = Buffer.from(cluster["certificate-authority-data"], "base64").toString();
        const asRobot = [
          `--server=${cluster.server}`,
          `--certificate-authority=${kubectl.file("authority.crt", authority)}`,
          `--kubeconfig=${kubectl.file("empty-kubeconfig", "")}`,
        ];
        expect(await kubectl.ok(...asRobot, `--token=${token}`, "-n", "access", "get", "pods", "-o", "name")).toBe("");
        expect(await kubectl.refused(...asRobot, `--token=${token}`, "get", "nodes")).toContain(
          'User "system:serviceaccount:access:robot" cannot list resource "nodes" in API group "" at the cluster scope',
        );
        expect(await kubectl.refused(...asRobot, `--token=${token.slice(0, -4)}AAAA`, "get", "nodes")).toMatch(
          /Unauthorized|must be logged in/,
        );
      },
      { since: 24, what: "create token" },
    );
  },
};
