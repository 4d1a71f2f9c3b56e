/** A ConfigMap of the smallest useful kind: about 200 bytes as sent. */
export function configMap(name: string, value: string): string {
  return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data: { key: value } });
}

/** A pod as a Deployment makes them: about 2.5 KB once the server has filled it in. No scheduler is asked, so that a real cluster does not run it. */
export function pod(name: string): string {
  const env = ["LOG_LEVEL", "REGION"].map((setting) => ({ name: setting, value: "as usual here" }));
  const container = {
    name: "app",
    image: "registry.example.com/team/app:v1.4.2",
    env,
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    resources: { requests: { cpu: "100m", memory: "128Mi" } },
    readinessProbe: { httpGet: { path: "/readyz", port: "http" } },
    volumeMounts: [{ name: "config", mountPath: "/etc/app" }],
  };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: "app", "pod-template-hash": "6f7c9d8b54" } },
    spec: {
      schedulerName: "nobody",
      automountServiceAccountToken: false,
      containers: [container],
      volumes: [{ name: "config", configMap: { name: "app" } }],
    },
  });
}
