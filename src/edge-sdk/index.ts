// The edge SDK, `adit/edge`: key verification, usage metering and reports of open tunnels for edges written
// in TypeScript. It talks HTTP to the control plane, knows the contract by its types, and needs no package at
// run time.
export {
  type ControlPlane,
  ControlPlaneError,
  createControlPlane,
  type HostResult,
  type UsageQuota,
  type VerifyResult,
} from './control-plane.ts'
export { readTokensFile, type Token, TokensFileError } from './keys/tokens-file.ts'
export { openTokensFile, type TokensFileOptions } from './keys/tokens-verifier.ts'
export { startVerifier, type Verifier, type VerifierOptions } from './keys/verifier.ts'
export {
  type AccessRules,
  type ClaimedTunnel,
  type ClaimResult,
  type SyncResult,
  startTunnelReporter,
  type TunnelReporter,
  type TunnelReporterOptions,
  type TunnelUsage,
} from './tunnels/reporter.ts'
export { type Meter, type MeterOptions, startMeter, type Transfer } from './usage/meter.ts'
