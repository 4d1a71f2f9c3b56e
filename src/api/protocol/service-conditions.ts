/** In the status of a Service: False while the eBPF data plane refuses some of its external addresses, absent otherwise. */
export const EXTERNAL_ADDRESSES_SERVED = "vendor.io/ExternalAddressesServed";

/** The condition's reason, and the reason of the event. */
export const ADDRESS_REFUSED = "AddressRefused";
