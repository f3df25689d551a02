// The policy of a workspace: rules for API keys and sign-in.

import { Checkbox, Group, Radio, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { KEY_DAYS_MAX } from '../../../src/contract/limits.ts'
import { call, type Output } from '../api.ts'
import { SaveButton } from '../components/forms/save-button.tsx'
import { ErrorAlert } from '../components/lists/query-states.tsx'
import { Section } from '../components/section.tsx'
import { showToast } from '../components/toast.tsx'
import { invalidateWorkspace } from '../queries.ts'
import { useWorkspace } from '../session.tsx'

type Policy = Output<'workspace.read'>['policy']

interface PolicyFormProps {
  policy: Policy
  /** Whether this server lets API keys manage keys at all. */
  isVariantA: boolean
}

const formatDays = ({ keyDaysMax }: Policy) => String(keyDaysMax ?? '')

function changesBetween(base: Policy, edited: Policy): Partial<Policy> {
  const names = Object.keys(edited) as (keyof Policy)[]
  return Object.fromEntries(
    names.flatMap((name) => (edited[name] === base[name] ? [] : [[name, edited[name]]])),
  )
}

export function PolicyForm({ policy: saved, isVariantA }: PolicyFormProps) {
  const { slug, role } = useWorkspace()
  const isOwner = role === 'owner'
  /** What the form started with: another owner may change the policy meanwhile. */
  const [base, setBase] = useState(saved)
  const [policy, setPolicy] = useState(saved)
  const [days, setDays] = useState(formatDays(saved))
  const update = (change: Partial<Policy>) => setPolicy({ ...policy, ...change })
  const edited = { ...policy, keyDaysMax: days === '' ? null : Number(days) }
  const save = useMutation({
    mutationFn: () => call('settings.policy', { workspace: slug, ...changesBetween(base, edited) }),
    onSuccess: (changed) => {
      setBase(changed)
      setPolicy(changed)
      setDays(formatDays(changed))
      showToast('Policy saved.')
      return invalidateWorkspace(slug, 'details')
    },
  })
  const isDays = days === '' || (/^\d{1,4}$/.test(days) && Number(days) >= 1 && Number(days) <= KEY_DAYS_MAX)
  const daysError = isDays
    ? undefined
    : `Enter a whole number from 1 to ${KEY_DAYS_MAX}, or leave empty for no limit.`
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (isDays) save.mutate()
  }
  return (
    <Section
      title="Policy"
      description="Rules for this workspace. Changes apply immediately in the dashboard, API and CLI."
    >
      <form onSubmit={submit}>
        <Stack gap="lg">
          <TextInput
            label="Maximum key lifetime (days)"
            description="Leave empty for no limit. New keys without an expiry get the maximum. Existing keys don’t change."
            placeholder="No limit"
            inputMode="numeric"
            error={daysError}
            disabled={!isOwner}
            value={days}
            onChange={(event) => setDays(event.currentTarget.value.trim())}
            inputWrapperOrder={['label', 'description', 'input', 'error']}
          />
          <Radio.Group
            label="Who can create API keys"
            description={!isVariantA && 'Members request a key, which one of these users approves.'}
            value={policy.keyCreators}
            onChange={(value) => update({ keyCreators: value as Policy['keyCreators'] })}
          >
            <Stack gap="xs" mt="xs">
              {isVariantA && (
                <Radio
                  value="member"
                  label="Everyone: members create personal keys, admins and owners any key"
                  disabled={!isOwner}
                />
              )}
              <Radio value="admin" label="Admins and owners" disabled={!isOwner} />
              <Radio value="owner" label="Owners only" disabled={!isOwner} />
            </Stack>
          </Radio.Group>
          {isVariantA && (
            <Checkbox
              label="API keys can manage API keys"
              description="Keys can create and revoke other keys. Turn this off so a leaked key cannot. A key can always revoke itself."
              disabled={!isOwner}
              checked={policy.keysManageKeys}
              onChange={(event) => update({ keysManageKeys: event.currentTarget.checked })}
            />
          )}
          <Checkbox
            label="Require two-factor authentication"
            description="Members must set it up before they can use the workspace. Personal keys of members without it are revoked, and their tunnels close. Members who only sign in with an identity provider are exempt."
            disabled={!isOwner}
            checked={policy.twoFactorRequired}
            onChange={(event) => update({ twoFactorRequired: event.currentTarget.checked })}
          />
          <ErrorAlert error={save.error} />
          {isOwner && (
            <Group>
              <SaveButton variant="default" saved={base} edited={edited} isPending={save.isPending}>
                Save policy
              </SaveButton>
            </Group>
          )}
        </Stack>
      </form>
    </Section>
  )
}
