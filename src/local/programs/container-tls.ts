import type { ContainerStart } from "../runtime/container-runner.ts";
import { ContainerStartError } from "../runtime/node-runtime.ts";
import { decoded, type Environment, type References } from "./container-env.ts";

interface Volume {
  name: string;
  secret?: { secretName?: string; optional?: boolean };
  configMap?: { name?: string; optional?: boolean };
}

/** Files programs of ours read, and the variable that carries each where there is no file system to mount into. */
const CARRIED: Readonly<Record<string, string>> = {
  "tls.crt": "VENDOR_TLS_CERT",
  "tls.key": "VENDOR_TLS_KEY",
  "ca.crt": "VENDOR_CA",
};

/**
 * The key pair and the authority a container has mounted, as `programTls` (src/cluster/program-tls.ts) takes them on the embedded
 * cluster. Like a kubelet, it waits for a volume's Secret or ConfigMap that is not there yet.
 */
export async function containerTls({ pod, container }: ContainerStart, references: References): Promise<Environment> {
  const mounted = new Set(
    ((container["volumeMounts"] as { name: string }[] | undefined) ?? []).map(({ name }) => name),
  );
  const volumes = ((pod.spec["volumes"] as Volume[] | undefined) ?? []).filter(({ name }) => mounted.has(name));
  const env: Environment = {};
  for (const volume of volumes) {
    const files = await filesOf(volume, pod.metadata.namespace ?? "", references);
    for (const [file, variable] of Object.entries(CARRIED)) {
      const text = files[file];
      if (text !== undefined) env[variable] ??= text;
    }
  }
  return env;
}

async function filesOf(volume: Volume, namespace: string, references: References): Promise<Environment> {
  const { secret, configMap } = volume;
  const name = secret?.secretName ?? configMap?.name;
  if (name === undefined) return {};
  const files = secret
    ? decoded(await references.secret(namespace, name))
    : (await references.configMap(namespace, name))?.data;
  if (files === undefined && !(secret ?? configMap)?.optional) {
    const what = secret ? "secret" : "configmap";
    const why = `MountVolume.SetUp failed for volume "${volume.name}" : ${what} "${name}" not found`;
    throw new ContainerStartError("volume", why);
  }
  return files ?? {};
}
