// The types of the dashboard's handlers, and what they share.
import type { FastifyBaseLogger } from 'fastify'
import type { dashboardOperations } from '../../../../contract/dashboard/index.ts'
import type { Variant } from '../../../../contract/variants.ts'
import type { Auth } from '../../../auth/sign-in.ts'
import type { Sso } from '../../../auth/sso.ts'
import type { AgentSignIn } from '../../../domain/agents/requests.ts'
import type { Services } from '../../../domain/context.ts'
import type { WebhookRules } from '../../../domain/webhooks/endpoints.ts'
import type { SendMail } from '../../../mail.ts'
import type { BrowserCaller, Callers, UserCaller } from '../../auth/sessions.ts'
import type { NodeCounters } from '../../limits/counters.ts'
import type { KnownBrowsers } from '../../limits/known-browser.ts'
import type { LoginThrottle } from '../../limits/login-throttle.ts'
import type { PasswordQueue } from '../../limits/password-queue.ts'
import type { SignInLimits } from '../../limits/sign-in-limits.ts'
import type { Handlers } from '../../operations/routes.ts'

export interface DashboardOptions {
  services: Services
  counters: NodeCounters
  variant: Variant
  /** The configured public URL; undefined if the server is reached where it listens. */
  baseUrl: string | undefined
  /** The URL that links begin with. */
  publicUrl: () => string
  auth: Auth
  /** Loaded on first use. */
  sso: { host: string; open: () => Promise<Sso> } | undefined
  knownBrowsers: KnownBrowsers
  sendMail: SendMail | undefined
  webhooks: WebhookRules
  agents: AgentSignIn
}

export type DashboardHandlers = Handlers<Callers, (typeof dashboardOperations)[number]>

/** The handlers of one group: those whose operation ids begin with it. */
export type HandlerGroup<Group extends string> = Pick<
  DashboardHandlers,
  Extract<keyof DashboardHandlers, `${Group}.${string}`>
>

export interface Dependencies extends DashboardOptions {
  throttle: LoginThrottle
  /** Runs work that hashes passwords, a few at a time for each network. */
  enqueue: PasswordQueue
  signInLimits: SignInLimits
  findUser: (caller: BrowserCaller) => Promise<UserCaller | undefined>
  log: FastifyBaseLogger
}

export const DONE = { done: true } as const
