import { parseEndpoints } from "../../../../datastore/config.ts";
import type { EtcdPlace } from "../../../migrations/datastore/etcd-place.ts";
import type { Observation } from "../../../observation.ts";
import { type ManifestWorkload, manifestView, variablesOf } from "../operator/manifest-view.ts";
import { errors } from "./errors.ts";

const FILES = { ca: "ETCD_CA_CERT_FILE", cert: "ETCD_CERT_FILE", key: "ETCD_KEY_FILE" } as const;

interface Mounts {
  volumeMounts?: { name: string; mountPath: string }[];
}
interface Volumes {
  volumes?: { name: string; secret?: { secretName?: string } }[];
}

/** Where the agents find etcd, by what the manifest in the cluster says. */
export function etcdPlaceOf({ names, service }: Pick<Observation, "names" | "service">): EtcdPlace {
  const agents = service.nodeAgents as ManifestWorkload | undefined;
  const view = manifestView(
    [agents, service.settings].flatMap((object) => object ?? []),
    names,
  );
  const variables = variablesOf(view.agent, view.settings, names);
  const endpoints = parseEndpoints(variables.get("ETCD_ENDPOINTS") ?? "", (problem) =>
    errors.MIGRATE_DATASTORE_ETCD_UNSET("ETCD_ENDPOINTS", problem),
  );
  const mounts = (view.agent as Mounts | undefined)?.volumeMounts ?? [];
  const volumes = (agents?.spec.template.spec as Volumes | undefined)?.volumes ?? [];
  const files: { ca?: string; cert?: string; key?: string } = {};
  let name: string | undefined;
  for (const [file, variable] of Object.entries(FILES)) {
    const path = variables.get(variable);
    if (!path) continue;
    const mount = mounts.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
    name = volumes.find((volume) => volume.name === mount?.name)?.secret?.secretName;
    if (!mount || !name) throw errors.MIGRATE_DATASTORE_ETCD_UNSET(variable, `${path} is in no Secret that is mounted`);
    files[file as keyof typeof files] = path.slice(mount.mountPath.length + 1);
  }
  const namespace = agents?.metadata.namespace ?? names.namespaces.orchestratorSystem;
  return { endpoints, files, ...(name !== undefined && { secret: { namespace, name } }) };
}
