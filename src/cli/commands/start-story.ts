import type { Session } from "../session.ts";
import { up } from "./cluster.ts";

/** `npm start`: an embedded cluster to look at, and what to try on it. */
export async function startStory(session: Session): Promise<void> {
  await up(session, { name: "demo", kind: "generic", nodes: 3, paper: true, detach: true });
  session.out(WHAT_TO_TRY);
}

const WHAT_TO_TRY = `
Try it:
  export KUBECONFIG=$(./bin/vendorctl cluster kubeconfig)
  kubectl get nodes -o wide
  kubectl create deployment web --image=nginx --replicas=3 && kubectl rollout status deployment web
  kubectl api-resources
  ./bin/vendorctl cluster logs --tail 20
Stop it:
  npm stop
`;
