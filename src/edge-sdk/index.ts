// The edge kit, `adit/edge`: what an edge written in TypeScript embeds. It knows the control plane by its address and the
// contract by its types; it imports nothing else of ours, and no package.
export { type ControlPlane, ControlPlaneError, createControlPlane, type Verdict } from './control-plane.ts'
export { type Meter, type MeterOptions, startMeter, type Transfer } from './meter.ts'
export { readTokensFile, type Token, TokensFileError } from './tokens-file.ts'
export { openTokensFile, type TokensFileOptions } from './tokens-verifier.ts'
export { startVerifier, type Verifier, type VerifierOptions } from './verifier.ts'
