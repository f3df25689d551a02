// Decides whether a request or connection may use a tunnel: by the rules of its clients and by those of its
// name, which both apply. Changed rules apply to new requests; those in progress continue.
import type { IncomingMessage } from 'node:http'
import { createNetworkMatcher, type NetworkMatcher, parseNetwork } from '../../lib/net/ip-network.ts'
import { BasicAuthCheck, type BasicAuthRule, credentialOf, type PasswordVerifier } from './basic-auth.ts'
import { type Denial, forbidden } from './denial.ts'
import type { TunnelPlace } from './hash-queue.ts'

export interface AccessRules {
  readonly basicAuth: BasicAuthRule | null
  /** Networks in CIDR notation; none means that every address is allowed. */
  readonly allowIp: readonly string[]
}

export const NO_RULES: AccessRules = { basicAuth: null, allowIp: [] }

/** Hashes are salted, so equal passwords that were hashed separately differ. */
export const areSameRules = (a: AccessRules, b: AccessRules): boolean =>
  isSameCredential(a.basicAuth, b.basicAuth) && a.allowIp.join() === b.allowIp.join()

const isSameCredential = (a: BasicAuthRule | null, b: BasicAuthRule | null) =>
  a?.user === b?.user && a?.hash === b?.hash

interface ActiveRules extends AccessRules {
  readonly isAllowed: NetworkMatcher | undefined
  readonly passwordCheck: BasicAuthCheck | undefined
}

export class AccessControl {
  readonly #place: TunnelPlace
  readonly #verifier: PasswordVerifier
  #ofClients: ActiveRules
  #ofName: ActiveRules

  constructor(place: TunnelPlace, verifier: PasswordVerifier, ofClients: AccessRules) {
    this.#place = place
    this.#verifier = verifier
    this.#ofClients = this.#activate(ofClients)
    this.#ofName = this.#activate(NO_RULES)
  }

  /** All clients of a pool have the same. */
  get clientRules(): AccessRules {
    return this.#ofClients
  }

  set clientRules(rules: AccessRules) {
    if (!areSameRules(rules, this.#ofClients)) this.#ofClients = this.#activate(rules, this.#ofClients)
  }

  get nameRules(): AccessRules {
    return this.#ofName
  }

  /** Set by the control plane, possibly while the tunnel is open. Null if the name has none. */
  setNameRules(rules: AccessRules | null): void {
    const changed = rules ?? NO_RULES
    if (!areSameRules(changed, this.#ofName)) this.#ofName = this.#activate(changed, this.#ofName)
  }

  get hasRules(): boolean {
    return this.needsPassword || this.limitsAddresses
  }

  /** Requests need a user and a password, which the local server does not get. */
  get needsPassword(): boolean {
    return this.#ofClients.basicAuth !== null || this.#ofName.basicAuth !== null
  }

  /** Only some addresses are allowed. */
  get limitsAddresses(): boolean {
    return this.#ofClients.allowIp.length > 0 || this.#ofName.allowIp.length > 0
  }

  /**
   * Undefined if the request is allowed. A promise if a password has to be verified; if it resolves with
   * undefined, check again, because the rules may have changed meanwhile.
   */
  check(
    request: IncomingMessage,
    address: string | undefined,
  ): Denial | undefined | Promise<Denial | undefined> {
    if (!this.#isAllowed(address)) return forbidden(address)
    if (!this.needsPassword) return undefined
    const credential = credentialOf(request)
    const { passwordCheck: ofClients } = this.#ofClients
    return ofClients?.check(credential, address) ?? this.#ofName.passwordCheck?.check(credential, address)
  }

  /** Whether a TCP connection is allowed. It cannot have a password, so a rule that needs one rejects all. */
  allowsConnection(address: string | undefined): boolean {
    return this.#isAllowed(address) && !this.needsPassword
  }

  #isAllowed(address: string | undefined): boolean {
    const [ofClients, ofName] = [this.#ofClients.isAllowed, this.#ofName.isAllowed]
    if (address === undefined) return !ofClients && !ofName
    return (ofClients?.(address) ?? true) && (ofName?.(address) ?? true)
  }

  #activate({ basicAuth, allowIp }: AccessRules, before?: ActiveRules): ActiveRules {
    return {
      basicAuth,
      allowIp,
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
    return new BasicAuthCheck(basicAuth, this.#place, this.#verifier)
  }
}
