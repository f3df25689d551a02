// The operator, as the audit log names the user who runs a command or the server.
import { hostname, userInfo } from 'node:os'

export const operatorActor = () => ({ kind: 'operator' as const, id: operatorName(), address: hostname() })

/** In a container the user may have an ID but no name. */
function operatorName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}`
  }
}
