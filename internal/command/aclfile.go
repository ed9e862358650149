package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/config"
)

// load makes the users those that the configuration names: of its own lines, or
// of the aclfile. It is for the start.
func (a *accounts) load(cfg *config.Set) error {
	file, lines := cfg.File("aclfile"), cfg.Users()
	if file != "" && len(lines) > 0 {
		return fmt.Errorf("%s: there are users in the configuration and in an aclfile: which of them hold cannot be told, so keep them in one place", lines[0].Where)
	}
	for _, line := range lines {
		if err := a.loadLine(line); err != nil {
			return err
		}
	}
	cfg.OnRewrite(a.configLines)
	if file != "" {
		return a.loadFile(file, nil)
	}
	return nil
}

// loadLine makes a user of a line of the configuration. The default user
// begins anew, as a user does that nobody has said anything about.
func (a *accounts) loadLine(line config.UserLine) error {
	wrong := func(err error) error { return fmt.Errorf("%s: user '%s': %w", line.Where, line.Name, err) }
	if acl.HasSpaces(line.Name) {
		return wrong(errors.New("Spaces not allowed in ACL usernames"))
	}
	ops, unmatched := acl.Merge(line.Rules)
	if unmatched >= 0 {
		return wrong(fmt.Errorf("unmatched parenthesis in the selector '%s'", line.Rules[unmatched]))
	}
	err := a.change(line.Name, nil, func(u *acl.User) error {
		if u.Name == defaultUser {
			if err := u.Apply(a.rules(), "reset"); err != nil {
				return err
			}
		}
		op, err := u.ApplyAll(a.rules(), ops)
		if errors.Is(err, acl.ErrUnknown) { // other rules may be secrets
			return fmt.Errorf("'%s': %w", op, err)
		}
		return err
	})
	if err != nil {
		return wrong(err)
	}
	if !a.find(line.Name).user.Load().On {
		a.svc.Log.Warn("a user of the configuration is off, having no 'on' in its rules: nobody can log in as it", "user", line.Name)
	}
	return nil
}

// configLines are the users for CONFIG REWRITE: none if they stand in an
// aclfile, or if there is but the default one as requirepass makes it.
func (a *accounts) configLines() []string {
	if a.svc.Config.String("aclfile") != "" {
		return nil
	}
	all := a.list()
	if len(all) == 1 {
		implied := acl.NewDefault(defaultUser, a.rules())
		if a.givePassword(implied, a.svc.Config.RequirePass()) == nil && implied.String() == a.first.user.Load().String() {
			return nil
		}
	}
	return a.lines(all)
}

// lines are the lines of ACL LIST and of files.
func (a *accounts) lines(all []*account) []string {
	lines := make([]string, len(all))
	for i, acc := range all {
		lines[i] = acc.user.Load().String()
	}
	return lines
}

// givePassword makes a password the only one of a user, or none needed.
func (a *accounts) givePassword(u *acl.User, password string) error {
	ops := []string{"resetpass", ">" + password}
	if password == "" {
		ops[1] = "nopass"
	}
	_, err := u.ApplyAll(a.rules(), ops)
	return err
}

// setPassword follows requirepass, which is the default user's password.
func (s *Service) setPassword(c *config.Set) error {
	return s.acl.change(defaultUser, nil, func(u *acl.User) error { return s.acl.givePassword(u, c.RequirePass()) })
}

// loadFile makes the users those of an aclfile. With a mistake in it nothing
// changes, and the error tells all of them.
func (a *accounts) loadFile(path string, by *Session) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("Error loading ACLs, opening file '%s': %s", path, systemError(err))
	}
	users, mistakes := acl.ParseFile(path, string(text), a.rules())
	if mistakes != "" {
		return errors.New(mistakes)
	}
	a.replace(users, by)
	return nil
}

// systemError is the system's words about a file, as C's strerror has them.
func systemError(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// saveFile writes the users to an aclfile, whole or not at all.
func (a *accounts) saveFile(path string) error {
	return config.ReplaceFile(path, strings.Join(a.lines(a.list()), "\n")+"\n")
}
