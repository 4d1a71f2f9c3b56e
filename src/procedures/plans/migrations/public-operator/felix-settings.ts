/**
 * Settings of the public agent that the public operator's conversion can write to FelixConfiguration, by the form of their value: those of operator
 * v1.40, which comes with v3.31. It finds a field by the variable's name in small letters and refuses any other variable `FELIX_*`.
 */
const SETTINGS = {
  text: `bpfDataIfacePattern bpfExternalServiceMode bpfLogLevel cgroupV2Path chainInsertMode dataplaneDriver debugMemoryProfilePath
    deviceRouteSourceAddress featureDetectOverride interfaceExclude iptablesFilterAllowAction iptablesLockFilePath iptablesMangleAllowAction
    iptablesNATOutgoingInterfaceFilter logFilePath logPrefix logSeverityFile metadataAddr natOutgoingAddress openstackRegion policySyncPathPrefix
    prometheusMetricsHost routeSource wireguardInterfaceName wireguardInterfaceNameV6 endpointStatusPathPrefix healthHost istioAmbientMode
    iptablesBackend awsSrcDstCheck dnsTrustedServers externalNodesList`,
  number: `deviceRouteProtocol egressIPVXLANPort egressIPVXLANVNI healthPort maxIpsetSize metadataPort prometheusReporterPort vxlanPort vxlanVNI
    wireguardListeningPort wireguardListeningPortV6 wireguardRoutingRulePriority iptablesMarkMask`,
  yesNo: `bpfConnectTimeLoadBalancingEnabled bpfDisableUnprivileged bpfHostConntrackBypass bpfKubeProxyEndpointSlicesEnabled
    bpfKubeProxyIptablesCleanupEnabled debugDisableLogDropping disableConntrackInvalidCheck endpointReportingEnabled genericXDPEnabled ipipEnabled
    prometheusGoMetricsEnabled prometheusProcessMetricsEnabled removeExternalRoutes sidecarAccelerationEnabled useInternalDataplaneDriver vxlanEnabled
    wafEventLogsFileEnabled wireguardEnabled wireguardEnabledV6 wireguardHostEncryptionEnabled xdpEnabled`,
  duration: `bpfKubeProxyMinSyncPeriod debugSimulateCalcGraphHangAfter debugSimulateDataplaneHangAfter endpointReportingDelay interfaceRefreshInterval
    ipsetsRefreshInterval iptablesLockProbeInterval iptablesLockTimeout iptablesPostWriteCheckInterval iptablesRefreshInterval netlinkTimeout
    reportingInterval reportingTTL routeRefreshInterval usageReportingInitialDelay usageReportingInterval wireguardKeepAlive xdpRefreshInterval`,
  failsafePorts: "failsafeInboundHostPorts failsafeOutboundHostPorts",
  ports: "kubeNodePortRanges natPortRange",
  range: "routeTableRange",
} as const;

type Form = keyof typeof SETTINGS;

const BY_VARIABLE: ReadonlyMap<string, { field: string; form: Form }> = new Map(
  (Object.entries(SETTINGS) as [Form, string][]).flatMap(([form, fields]) =>
    fields
      .trim()
      .split(/\s+/)
      .map((field) => [variableOf(field), { field, form }]),
  ),
);

/** Where the name in the API is another one than the name of the operator's own field, which is what it compares. */
function variableOf(field: string): string {
  const own = field === "externalNodesList" ? "externalNodesCIDRList" : field;
  return `FELIX_${(own === "wireguardKeepAlive" ? "wireguardPersistentKeepAlive" : own).toUpperCase()}`;
}

const FORMS: Readonly<Record<Form, RegExp>> = {
  text: /^/,
  number: /^[+-]?\d+$/,
  yesNo: /^(1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)$/,
  duration: /^[+-]?(0|(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+$/,
  failsafePorts: /^(none|[^:,]+:\d{1,5}(,[^:,]+:\d{1,5})*)$/,
  ports: /^[^,]+(,[^,]+)*$/,
  range: /^\d+-\d+$/,
};

/** The field that has a variable's meaning, and whether the conversion understands its value; undefined: it knows no such setting. */
export function felixSetting(variable: string, value: string): { field: string; understood: boolean } | undefined {
  const known = BY_VARIABLE.get(variable);
  if (!known) return undefined;
  // The one duration that the agent's environment has without a unit.
  const text = variable === "FELIX_IPTABLESREFRESHINTERVAL" && /^\d+$/.test(value) ? `${value}s` : value;
  return { field: known.field, understood: FORMS[known.form].test(text) };
}
