// Bodies of the edge API, derived from the contract. The published declarations have the same types written
// out (scripts/declarations.ts), so that an edge that embeds the SDK needs neither the contract nor TypeBox.
import type { Static } from 'typebox'
import type { findHost } from '../contract/edge/hosts.ts'
import type { verifyKey } from '../contract/edge/operations.ts'
import type { reportUsage } from '../contract/edge/reports.ts'
import type { claimTunnels, syncTunnels } from '../contract/edge/tunnels.ts'

export type VerifyResult = Static<(typeof verifyKey)['response']['schema']>
export type UsageQuota = NonNullable<(VerifyResult & { valid: true })['workspace']['quota']>
export type HostResult = Static<(typeof findHost)['response']['schema']>
export type Report = Static<(typeof reportUsage)['body']>
export type Receipt = Static<(typeof reportUsage)['response']['schema']>
export type TunnelClaim = Static<(typeof claimTunnels)['body']>
export type ClaimedTunnel = TunnelClaim['tunnels'][number]
export type ClaimResult = Static<(typeof claimTunnels)['response']['schema']>['results'][number]
export type AccessRules = NonNullable<(ClaimResult & { granted: true })['access']>
export type TunnelSync = Static<(typeof syncTunnels)['body']>
export type SyncResult = Static<(typeof syncTunnels)['response']['schema']>
