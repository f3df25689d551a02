// Endpoints of better-auth that it has none for itself. Like its own they are called, never mounted.
import { createAuthEndpoint } from 'better-auth/api'
import { setSessionCookie } from 'better-auth/cookies'

const TWO_FACTOR_COOKIE = 'two_factor'

/** What better-auth takes the type of the body from. */
const startSession = { method: 'POST', metadata: { $Infer: { body: {} as { userId: string } } } } as const

export const ownEndpoints = {
  id: 'adit',
  endpoints: {
    /** Makes a session for somebody who has proven who they are, and its cookie. */
    startSession: createAuthEndpoint.serverOnly(startSession, async (ctx) => {
      const { userId } = ctx.body
      const { internalAdapter } = ctx.context
      const user = await internalAdapter.findUserById(userId)
      if (!user) throw new Error('there is no such user')
      const session = await internalAdapter.createSession(userId)
      await setSessionCookie(ctx, { session, user })
      return ctx.json({ done: true })
    }),

    /** Who owes a code at this browser; null where nobody does. */
    findCodeOwner: createAuthEndpoint.serverOnly({ method: 'GET', requireHeaders: true }, async (ctx) => {
      const { name } = ctx.context.createAuthCookie(TWO_FACTOR_COOKIE)
      const challenge = await ctx.getSignedCookie(name, ctx.context.secret)
      const found = challenge ? await ctx.context.internalAdapter.findVerificationValue(challenge) : null
      return ctx.json({ userId: found?.value ?? null })
    }),
  },
}
