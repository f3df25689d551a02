// The edge SDK, `adit/edge`: key verification, usage metering and reports of open tunnels for edges written
// in TypeScript. It talks HTTP to the control plane, knows the contract by its types, and needs no package at
// run time.
export type {
  AccessRules,
  ClaimedTunnel,
  ClaimResult,
  HostResult,
  SyncResult,
  UsageQuota,
  VerifyResult,
} from './api.ts'
export type { Cluster, Peer } from './cluster/types.ts'
export { type ControlPlane, ControlPlaneError, createControlPlane } from './control-plane.ts'
export { readTokensFile, type Token, TokensFileError } from './keys/tokens-file.ts'
export { openTokensFile, type TokensFileOptions } from './keys/tokens-verifier.ts'
export { startVerifier, type Verifier, type VerifierOptions } from './keys/verifier.ts'
export type { TunnelUsage } from './tunnels/changes.ts'
export {
  type CountingLease,
  type Instant,
  startTunnelReporter,
  type TunnelReporter,
  type TunnelReporterOptions,
} from './tunnels/reporter.ts'
export type { Transfer } from './usage/counters.ts'
export { type Meter, type MeterOptions, startMeter } from './usage/meter.ts'
