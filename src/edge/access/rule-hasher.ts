// Turns the access rules that a tunnel client asks for into those that the edge keeps: without the password.
import { randomBytes } from 'node:crypto'
import { hashPassword, verifyPassword } from '../../lib/credentials/password-hash.ts'
import type { RequestedAccess } from '../../tunnel-protocol/protocol.ts'
import type { AccessRules } from './access-control.ts'
import { HashDisplaced, HashQueue, type TunnelRef } from './hash-queue.ts'

export class RuleHasher {
  readonly #queue = new HashQueue()

  /**
   * Undefined if too many passwords are waiting. For the password of `current`, returns the hash of
   * `current`, so that the rules of a pool can be compared.
   */
  async hash(
    tunnel: TunnelRef,
    { basicAuth, allowIp = [] }: RequestedAccess,
    current: AccessRules | undefined,
  ): Promise<AccessRules | undefined> {
    if (!basicAuth) return { basicAuth: null, allowIp }
    const { user, password } = basicAuth
    const hashed = this.#queue.run(tunnel, async () => {
      const { hash: currentHash } = current?.basicAuth ?? {}
      const isKnown = currentHash !== undefined && (await verifyPassword(password, currentHash))
      const hash = isKnown ? currentHash : await hashPassword(password, randomBytes, 'memory')
      return { basicAuth: { user, hash }, allowIp }
    })
    if (typeof hashed === 'string') return undefined
    return hashed.catch((error: unknown) => {
      if (error instanceof HashDisplaced) return undefined
      throw error
    })
  }
}
