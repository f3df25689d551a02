// Additional better-auth endpoints. Like its own, they are called as functions and not exposed as routes.
import { createAuthEndpoint } from 'better-auth/api'
import { setSessionCookie } from 'better-auth/cookies'

const TWO_FACTOR_COOKIE = 'two_factor'

/** better-auth infers the type of the body from `$Infer`. */
const startSession = { method: 'POST', metadata: { $Infer: { body: {} as { userId: string } } } } as const

export const ownEndpoints = {
  id: 'adit',
  endpoints: {
    /** Creates a session for an authenticated user, and its cookie. */
    startSession: createAuthEndpoint.serverOnly(startSession, async (ctx) => {
      const { userId } = ctx.body
      const { internalAdapter } = ctx.context
      const user = await internalAdapter.findUserById(userId)
      if (!user) throw new Error('user not found')
      const session = await internalAdapter.createSession(userId)
      await setSessionCookie(ctx, { session, user })
      return ctx.json({ done: true })
    }),

    /** The user with a pending two-factor challenge in this browser; null if there is none. */
    findCodeOwner: createAuthEndpoint.serverOnly({ method: 'GET', requireHeaders: true }, async (ctx) => {
      const { name } = ctx.context.createAuthCookie(TWO_FACTOR_COOKIE)
      const challenge = await ctx.getSignedCookie(name, ctx.context.secret)
      const found = challenge ? await ctx.context.internalAdapter.findVerificationValue(challenge) : null
      return ctx.json({ userId: found?.value ?? null })
    }),
  },
}
