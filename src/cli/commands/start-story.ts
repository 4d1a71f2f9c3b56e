import type { Client } from "../../cluster/client.ts";
import { withCluster } from "../connect.ts";
import { formatTable } from "../printer.ts";
import type { Session } from "../session.ts";
import { up } from "./cluster.ts";

const DEMO = "demo";

/** `npm start`: an embedded cluster to look at, and what to try on it. Run again, it shows the one that is there. */
export async function startStory(session: Session): Promise<void> {
  const commands = await session.loadClusterCommands();
  const running = (await commands.list()).some(({ name, state }) => name === DEMO && state === "running");
  if (running) session.out(`the cluster ${DEMO} is running already\n`);
  else await up(session, { name: DEMO, kind: "generic", nodes: 3, paper: true, detach: true });
  const kubeconfig = await commands.kubeconfig({ name: DEMO });
  const inDemo = { ...session, flags: { ...session.flags, kubeconfig, context: undefined } };
  await withCluster(inDemo, async (client) => {
    session.out(`\n${await tableOf(client, "/api/v1/nodes", ["Name", "Status", "Roles", "Version", "OS-Image"])}`);
    session.out(
      `\n${await tableOf(client, "/api/v1/namespaces/kube-system/pods", ["Name", "Ready", "Status", "Node"])}`,
    );
  });
  session.out(WHAT_TO_TRY);
}

interface ServerTable {
  columnDefinitions: { name: string }[];
  rows: { cells: unknown[] }[];
}

/** The server's own table, as kubectl prints it, cut to the columns that tell the story. */
async function tableOf(client: Client, path: string, wanted: readonly string[]): Promise<string> {
  const headers = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
  const table = JSON.parse(await (await client.raw({ method: "GET", path, headers })).text()) as ServerTable;
  const at = wanted.map((name) => table.columnDefinitions.findIndex((column) => column.name === name));
  return formatTable({
    columns: wanted.map((name) => name.toUpperCase()),
    rows: table.rows.map(({ cells }) => at.map((index) => String(cells[index] ?? ""))),
  });
}

const WHAT_TO_TRY = `
Try it:
  export KUBECONFIG=$(./bin/vendorctl cluster kubeconfig)
  kubectl get nodes -o wide
  kubectl create deployment web --image=nginx --replicas=3 && kubectl rollout status deployment web
  kubectl apply --server-side -f manifests/operator-crds.yaml -f manifests/vendor-operator.yaml
  kubectl create -f manifests/custom-resources.yaml && kubectl get vendorstatus -w
  ./bin/vendorctl cluster up --name old --installed v3.27 --detach    # as an older version left it
  ./bin/vendorctl cluster list
Stop it:
  npm stop
`;
