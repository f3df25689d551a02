// Whether a tunnel may be opened: with this key, under this name. Every refusal says why, and what to do about it.
import { ControlPlaneError, type Meter, type Verifier } from '../../edge-sdk/index.ts'
import { isName, NAME_WORDS, randomName } from '../names.ts'
import type { Registry, Tunnel } from './registry.ts'

export interface OpenRequest {
  readonly key: string | undefined
  /** Any name will do where none is given. */
  readonly name?: unknown
  /** The secret of a tunnel that comes back after its connection was lost. */
  readonly secret?: unknown
}

export interface Refusal {
  readonly status: 400 | 401 | 403 | 409 | 429 | 503
  readonly error: string
  readonly message: string
}

export type Opening = { tunnel: Tunnel; name: string } | Refusal

export interface AdmissionOptions {
  readonly verifier: Pick<Verifier, 'verify'>
  readonly tunnels: Registry
  readonly meter: Pick<Meter, 'refused'> | undefined
}

const KEYS = {
  unknown: 'This API key is not known here. Was it copied whole?',
  malformed: 'This is no API key: a character is wrong or missing. Was it copied whole?',
  revoked: 'This API key was revoked. Ask for another one.',
}

export function createAdmission({ verifier, tunnels, meter }: AdmissionOptions) {
  return async ({ key, name = randomName(), secret }: OpenRequest): Promise<Opening> => {
    if (!isName(name)) return refusal(400, 'invalid_request', `The name of a tunnel has ${NAME_WORDS}.`)
    if (!key) return refusal(401, 'unauthorized', 'An API key is needed: "Authorization: Bearer adit_…".')
    let verdict: Awaited<ReturnType<Verifier['verify']>>
    try {
      verdict = await verifier.verify(key)
    } catch (error) {
      if (!(error instanceof ControlPlaneError)) throw error
      return refusal(
        503,
        'unavailable',
        'The edge cannot ask its control plane about the key. Try again in a while.',
      )
    }
    // From here on nothing is waited for: a revocation that is heard later finds the tunnel.
    if (!verdict.valid) return refusal(401, 'unauthorized', KEYS[verdict.reason])
    const { keyId, workspace } = verdict
    const refuse = (...why: Parameters<typeof refusal>): Refusal => {
      meter?.refused(workspace.slug)
      return refusal(...why)
    }
    if (!workspace.provisioned)
      return refuse(
        403,
        'not_provisioned',
        `The workspace "${workspace.slug}" is not ready for tunnels yet. The operator provisions it: adit admin workspace ` +
          `provision ${workspace.slug}.`,
      )
    const full = tunnels.fullness(workspace.slug)
    if (full) return refuse(429, 'too_many_tunnels', full)
    const host = `${name}.${workspace.tunnelBase}`
    const comesBackWith = typeof secret === 'string' ? secret : undefined
    const tunnel = tunnels.open(host, { key, keyId, workspace: workspace.slug }, comesBackWith)
    if (tunnel) return { tunnel, name }
    return refuse(409, 'name_taken', `A tunnel is open at ${host} already. Choose another name.`)
  }
}

const refusal = (status: Refusal['status'], error: string, message: string): Refusal => ({
  status,
  error,
  message,
})
