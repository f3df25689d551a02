// State of the form for access rules: its values, what is wrong with them, and saving.
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ALLOWED_NETWORKS_MAX } from '../../../src/lib/credentials/access-limits.ts'
import {
  BASIC_AUTH_LIMITS,
  basicAuthLength,
  isBasicAuthPassword,
  normalizeText,
} from '../../../src/lib/credentials/basic-auth.ts'
import { call } from '../api.ts'
import { ApiError, fieldError } from '../api-error.ts'
import { showToast } from '../components/toast.tsx'
import { tooManyCharacters } from '../format.ts'
import { invalidateWorkspace, type TunnelName } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

export type AccessRulesForm = ReturnType<typeof useAccessRulesForm>

export function useAccessRulesForm({ name, access }: TunnelName, onSaved: () => void) {
  const { slug } = useWorkspace()
  const [saved] = useState({
    requiresPassword: access.user !== null,
    user: access.user ?? '',
    password: '',
    networks: access.allowIp.join('\n'),
    hostHeader: access.hostHeader ?? '',
  })
  const [values, setValues] = useState(saved)
  const { requiresPassword, user, password } = values
  const hostHeader = values.hostHeader.trim()
  const allowIp = values.networks.split(/[\s,]+/).filter(Boolean)
  const save = useMutation({
    mutationFn: () =>
      call('names.set-access', {
        workspace: slug,
        name,
        allowIp,
        ...(hostHeader && { hostHeader }),
        ...(requiresPassword && {
          basicAuth: { user, ...(password && { password: normalizeText(password) }) },
        }),
      }),
    onSuccess: () => {
      onSaved()
      const hasRules = requiresPassword || allowIp.length > 0 || hostHeader !== ''
      showToast(`Access rules of ${name} ${hasRules ? 'saved' : 'removed'}.`)
      invalidateWorkspace(slug, 'names')
    },
  })
  const invalid = {
    user: requiresPassword ? userProblem(user) : undefined,
    password: requiresPassword ? passwordProblem(password) : undefined,
    networks: networksProblem(allowIp),
  }
  const rejected = {
    user: fieldError(save.error, 'user'),
    password: fieldError(save.error, 'password'),
    networks: rejectedNetworks(save.error, allowIp),
    hostHeader: fieldError(save.error, 'hostHeader'),
  }
  const keepsPassword = access.user !== null && password === ''
  const hasPassword = !requiresPassword || keepsPassword || isBasicAuthPassword(password)
  return {
    values,
    edit: (changed: Partial<typeof values>) => {
      save.reset()
      setValues({ ...values, ...changed })
    },
    errors: {
      user: invalid.user ?? rejected.user,
      password: invalid.password ?? rejected.password,
      networks: invalid.networks ?? rejected.networks,
      hostHeader: rejected.hostHeader,
    },
    /** An error that is not about a field. */
    otherError: Object.values(rejected).some(Boolean) ? null : save.error,
    saved,
    isValid: hasPassword && !Object.values(invalid).some(Boolean),
    isSaving: save.isPending,
    save: save.mutate,
  }
}

function userProblem(user: string): string | undefined {
  if (user.includes(':')) return 'A user name cannot contain a colon.'
  const tooMany = basicAuthLength(user) - BASIC_AUTH_LIMITS.userCharsMax
  return tooMany > 0 ? tooManyCharacters(tooMany) : undefined
}

/** Checks the characters only: the input itself shows what is wrong with the length. */
const passwordProblem = (password: string): string | undefined =>
  /\p{Cc}/u.test(password) ? 'A password cannot contain control characters, such as a tab.' : undefined

const networksProblem = ({ length }: string[]): string | undefined =>
  length > ALLOWED_NETWORKS_MAX
    ? `${length - ALLOWED_NETWORKS_MAX} too many: the limit is ${ALLOWED_NETWORKS_MAX}.`
    : undefined

/** Names the entries that the server rejected, whose index is in the path of the error. */
function rejectedNetworks(error: unknown, networks: string[]): string | undefined {
  const details = error instanceof ApiError ? error.details : []
  const rejected = details.flatMap(({ path }) => {
    const index = /\/allowIp\/(\d+)$/.exec(path)?.[1]
    return index === undefined ? [] : [`“${networks[Number(index)]}”`]
  })
  if (rejected.length === 0) return undefined
  const rule = rejected.length === 1 ? 'is not an IP address or network' : 'are not IP addresses or networks'
  return `${rejected.join(', ')} ${rule}.`
}
