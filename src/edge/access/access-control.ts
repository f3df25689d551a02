// Decides whether a request or connection may use a tunnel: by the rules of its clients and by those of its
// name, which both apply. Changed rules apply to new requests; those in progress continue.
import type { IncomingMessage } from 'node:http'
import { createNetworkMatcher, type NetworkMatcher, parseNetwork } from '../../lib/net/ip-network.ts'
import type { VisitorError } from '../error-responses/causes.ts'
import { BasicAuthCheck, type BasicAuthRule, type PasswordVerifier, parseCredential } from './basic-auth.ts'
import { forbidden } from './denial.ts'
import type { TunnelRef } from './hash-queue.ts'

export interface AccessRules {
  readonly basicAuth: BasicAuthRule | null
  /** Networks in CIDR notation; none means that every address is allowed. */
  readonly allowIp: readonly string[]
  /** Host header for local servers: `rewrite` or a host. Only rules of names have it. */
  readonly hostHeader?: string | undefined
}

export const NO_RULES: AccessRules = { basicAuth: null, allowIp: [] }

/** Hashes are salted, so equal passwords that were hashed separately differ. */
export const areSameRules = (a: AccessRules, b: AccessRules): boolean =>
  isSameCredential(a.basicAuth, b.basicAuth) &&
  a.allowIp.join() === b.allowIp.join() &&
  a.hostHeader === b.hostHeader

const isSameCredential = (a: BasicAuthRule | null, b: BasicAuthRule | null) =>
  a?.user === b?.user && a?.hash === b?.hash

let latestRevision = 0

interface ActiveRules extends AccessRules {
  readonly isAllowed: NetworkMatcher | undefined
  readonly passwordCheck: BasicAuthCheck | undefined
}

export class AccessControl {
  readonly #tunnel: TunnelRef
  readonly #verifier: PasswordVerifier
  #clientRules: ActiveRules
  #nameRules: ActiveRules
  #revision: number
  /** Called when the rules have changed. */
  onChanged: (() => void) | undefined

  constructor(tunnel: TunnelRef, verifier: PasswordVerifier, clientRules: AccessRules) {
    this.#tunnel = tunnel
    this.#verifier = verifier
    this.#clientRules = this.#activate(clientRules)
    this.#nameRules = this.#activate(NO_RULES)
    latestRevision += 1
    this.#revision = latestRevision
  }

  /** Grows with each change. No two tunnels of this edge have had the same one. */
  get revision(): number {
    return this.#revision
  }

  /** All clients of a pool have the same rules. */
  get clientRules(): AccessRules {
    return this.#clientRules
  }

  set clientRules(rules: AccessRules) {
    if (areSameRules(rules, this.#clientRules)) return
    this.#clientRules = this.#activate(rules, this.#clientRules)
    this.#change()
  }

  get nameRules(): AccessRules {
    return this.#nameRules
  }

  /** The control plane may change the rules while the tunnel is open. Null if the name has none. */
  setNameRules(rules: AccessRules | null): void {
    const changed = rules ?? NO_RULES
    if (areSameRules(changed, this.#nameRules)) return
    this.#nameRules = this.#activate(changed, this.#nameRules)
    this.#change()
  }

  get hasRules(): boolean {
    return this.needsPassword || this.limitsAddresses
  }

  /** Requests need a user and a password, which the local server does not get. */
  get needsPassword(): boolean {
    return this.#clientRules.basicAuth !== null || this.#nameRules.basicAuth !== null
  }

  /** Only some addresses are allowed. */
  get limitsAddresses(): boolean {
    return this.#clientRules.allowIp.length > 0 || this.#nameRules.allowIp.length > 0
  }

  /**
   * Undefined if the request is allowed. A promise if a password has to be verified; if it resolves with
   * undefined, check again, because the rules may have changed meanwhile.
   */
  check(
    request: IncomingMessage,
    address: string | undefined,
  ): VisitorError | undefined | Promise<VisitorError | undefined> {
    if (!this.#isAllowed(address)) return forbidden(address)
    if (!this.needsPassword) return undefined
    const credential = parseCredential(request)
    const { passwordCheck: clientCheck } = this.#clientRules
    return (
      clientCheck?.check(credential, address) ?? this.#nameRules.passwordCheck?.check(credential, address)
    )
  }

  /** Whether a TCP connection is allowed. It cannot have a password, so a rule that needs one rejects all. */
  allowsConnection(address: string | undefined): boolean {
    return this.#isAllowed(address) && !this.needsPassword
  }

  #isAllowed(address: string | undefined): boolean {
    const [allowedByClients, allowedByName] = [this.#clientRules.isAllowed, this.#nameRules.isAllowed]
    if (address === undefined) return !allowedByClients && !allowedByName
    return (allowedByClients?.(address) ?? true) && (allowedByName?.(address) ?? true)
  }

  #change(): void {
    latestRevision += 1
    this.#revision = latestRevision
    this.onChanged?.()
  }

  #activate(rules: AccessRules, before?: ActiveRules): ActiveRules {
    const { basicAuth, allowIp } = rules
    return {
      ...rules,
      // An entry that is not a network allows nothing.
      isAllowed:
        allowIp.length > 0
          ? createNetworkMatcher(allowIp.flatMap((text) => parseNetwork(text) ?? []))
          : undefined,
      passwordCheck: this.#passwordCheck(basicAuth, before),
    }
  }

  /** An unchanged rule keeps its check, which knows the credential that was accepted. */
  #passwordCheck(
    basicAuth: BasicAuthRule | null,
    before: ActiveRules | undefined,
  ): BasicAuthCheck | undefined {
    if (!basicAuth) return undefined
    if (before && isSameCredential(basicAuth, before.basicAuth)) return before.passwordCheck
    return new BasicAuthCheck(basicAuth, this.#tunnel, this.#verifier)
  }
}
