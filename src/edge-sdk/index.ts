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
export { type Meter, type MeterOptions, startMeter, type Transfer } from './meter.ts'
export { readTokensFile, type Token, TokensFileError } from './tokens-file.ts'
export { openTokensFile, type TokensFileOptions } from './tokens-verifier.ts'
export {
  type AccessRules,
  type ClaimedTunnel,
  type ClaimResult,
  type SyncResult,
  startTunnelReporter,
  type TunnelReporter,
  type TunnelReporterOptions,
  type TunnelUsage,
} from './tunnel-reporter.ts'
export { startVerifier, type Verifier, type VerifierOptions } from './verifier.ts'
