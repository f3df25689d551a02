// Decides whether a tunnel may be opened with a key and a name. Every rejection has a reason and a remedy.
import { ControlPlaneError, type Meter, type Verifier, type VerifyResult } from '../../edge-sdk/index.ts'
import { DNS_LABEL_RULE } from '../../net/hostname.ts'
import { isTunnelName, randomName } from '../names.ts'
import type { Registry, Tunnel } from './registry.ts'

export interface OpenRequest {
  readonly key: string | undefined
  /** A random name if undefined. */
  readonly name?: unknown
  /** The secret of the tunnel to reopen after its connections were lost. */
  readonly secret?: unknown
}

export interface Rejection {
  readonly status: 400 | 401 | 403 | 409 | 429 | 503
  readonly error: string
  readonly message: string
}

export type Admission = { tunnel: Tunnel; name: string } | Rejection

export interface AdmissionOptions {
  readonly verifier: Pick<Verifier, 'verify'>
  readonly registry: Registry
  readonly meter: Pick<Meter, 'refused'> | undefined
}

const KEY_MESSAGES: Record<(VerifyResult & { valid: false })['reason'], string> = {
  unknown: 'Unknown API key. Check that it was copied completely.',
  revoked: 'This API key was revoked. Use another key.',
}

export function createAdmission({ verifier, registry, meter }: AdmissionOptions) {
  return async ({ key, name = randomName(), secret }: OpenRequest): Promise<Admission> => {
    if (!isTunnelName(name))
      return rejection(400, 'invalid_request', `Invalid tunnel name (expected ${DNS_LABEL_RULE})`)
    if (!key)
      return rejection(401, 'unauthorized', 'Missing API key (expected "Authorization: Bearer adit_…")')
    let result: VerifyResult
    try {
      result = await verifier.verify(key)
    } catch (error) {
      if (!(error instanceof ControlPlaneError)) throw error
      const message = 'The edge cannot reach its control plane to verify the key. Retry shortly.'
      return rejection(503, 'unavailable', message)
    }
    // Synchronous from here on, so that a later revocation finds the tunnel in the registry.
    if (!result.valid) return rejection(401, 'unauthorized', KEY_MESSAGES[result.reason])
    const { keyId, workspace } = result
    const reject = (...why: Parameters<typeof rejection>): Rejection => {
      meter?.refused(workspace.slug)
      return rejection(...why)
    }
    if (!workspace.provisioned)
      return reject(
        403,
        'not_provisioned',
        `The workspace "${workspace.slug}" is not provisioned for tunnels. The operator provisions it with ` +
          `\`adit admin workspace provision ${workspace.slug}\`.`,
      )
    const limit = registry.limitReached(workspace.slug)
    if (limit) return reject(429, 'too_many_tunnels', limit)
    const host = `${name}.${workspace.tunnelBase}`
    const reopenSecret = typeof secret === 'string' ? secret : undefined
    const tunnel = registry.open(host, { key, keyId, workspace: workspace.slug }, reopenSecret)
    if (tunnel) return { tunnel, name }
    return reject(409, 'name_taken', `A tunnel is already open at ${host}. Choose another name.`)
  }
}

const rejection = (status: Rejection['status'], error: string, message: string): Rejection => ({
  status,
  error,
  message,
})
