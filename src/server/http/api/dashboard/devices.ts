// Approval of sign-ins from a terminal. Wrong codes are counted, so that codes of others cannot be guessed.
import { approveDevice, denyDevice, readDevice } from '../../../domain/devices/authorizations.ts'
import { Fault } from '../../../domain/fault.ts'
import type { UserCaller } from '../../auth/sessions.ts'
import { perUserCode } from '../../limits/sign-in-limits.ts'
import type { Dependencies, HandlerGroup } from './handlers.ts'

export function deviceHandlers({ services, throttle }: Dependencies): HandlerGroup<'devices'> {
  async function withCode<T>({ user, browser }: UserCaller, act: () => Promise<T>): Promise<T> {
    const refund = await throttle.consume(perUserCode(user.id, browser.address))
    try {
      const result = await act()
      await refund()
      return result
    } catch (error) {
      const isWrong = error instanceof Fault && error.code === 'not_found'
      if (!isWrong) await refund()
      throw error
    }
  }

  return {
    'devices.read': (caller, { code }) => withCode(caller, () => readDevice(services, caller.user.id, code)),
    'devices.approve': (ctx, input) => withCode(ctx, () => approveDevice(ctx, input)),
    'devices.deny': (caller, { code }) => withCode(caller, () => denyDevice(services, caller.actor, code)),
  }
}
