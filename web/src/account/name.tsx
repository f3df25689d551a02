import { call } from '../api.ts'
import { NameForm } from '../components/forms/name-form.tsx'
import { Section } from '../components/section.tsx'
import { useSession } from '../session.tsx'

export function Name() {
  const { user } = useSession()
  const rename = (name: string) => call('account.rename', { name })
  return (
    <Section title="Name" description="Other members see this name. Past audit log entries keep the old one.">
      <NameForm label="Name" autoComplete="name" saved={user.name} onSave={rename} actionLabel="Save" />
    </Section>
  )
}
