package acl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/ebbdb/ebb/internal/config"
)

// Load creates the users that the configuration names, in its own lines or in the aclfile.
// The server calls it when it starts. Load also makes CONFIG REWRITE write the users.
func (a *Accounts) Load() error {
	cfg := a.config
	file, lines := cfg.File("aclfile"), cfg.Users()
	if file != "" && len(lines) > 0 {
		return fmt.Errorf("%s: the configuration defines users and names an aclfile; define the users in one of the two", lines[0].Where)
	}
	for _, line := range lines {
		if err := a.loadLine(line); err != nil {
			return err
		}
	}
	cfg.OnRewrite(a.configLines)
	if file != "" {
		_, err := a.LoadFile(file, nil)
		return err
	}
	return nil
}

// loadLine makes a user of a line of the configuration. The default user starts from no
// rules, as other users do.
func (a *Accounts) loadLine(line config.UserLine) error {
	wrong := func(err error) error { return fmt.Errorf("%s: user '%s': %w", line.Where, line.Name, err) }
	if HasSpaces(line.Name) {
		return wrong(errors.New("Spaces not allowed in ACL usernames"))
	}
	ops, unmatched := Merge(line.Rules)
	if unmatched >= 0 {
		return wrong(fmt.Errorf("unmatched parenthesis in the selector '%s'", line.Rules[unmatched]))
	}
	_, err := a.Edit(line.Name, func(u *User) error {
		if u.Name == DefaultUser {
			if err := u.Apply(a.Rules(), "reset"); err != nil {
				return err
			}
		}
		op, err := u.ApplyAll(a.Rules(), ops)
		if errors.Is(err, ErrUnknown) { // other rules may be passwords
			return fmt.Errorf("'%s': %w", op, err)
		}
		return err
	})
	if err != nil {
		return wrong(err)
	}
	if !a.Find(line.Name).User().On {
		a.logger.Warn("a user of the configuration is off, because its rules have no 'on': clients cannot log in as this user", "user", line.Name)
	}
	return nil
}

// configLines returns the users' lines for CONFIG REWRITE: none if the users are in an
// aclfile, or if the only user is the default one as requirepass makes it.
func (a *Accounts) configLines() []string {
	if a.config.String("aclfile") != "" {
		return nil
	}
	all := a.List()
	if len(all) == 1 {
		implied := NewDefault(DefaultUser, a.Rules())
		if a.givePassword(implied, a.config.RequirePass()) == nil && implied.String() == a.first.User().String() {
			return nil
		}
	}
	return a.Lines(all)
}

// Lines returns the lines of ACL LIST and of files.
func (a *Accounts) Lines(all []*Account) []string {
	lines := make([]string, len(all))
	for i, acc := range all {
		lines[i] = acc.User().String()
	}
	return lines
}

// givePassword makes a password the only one of a user. With an empty password the user
// needs none.
func (a *Accounts) givePassword(u *User, password string) error {
	ops := []string{"resetpass", ">" + password}
	if password == "" {
		ops[1] = "nopass"
	}
	_, err := u.ApplyAll(a.Rules(), ops)
	return err
}

// SetPassword gives the default user a password, as requirepass says; "" for none.
func (a *Accounts) SetPassword(password string) (Change, error) {
	return a.Edit(DefaultUser, func(u *User) error { return a.givePassword(u, password) })
}

// ErrNoRoom: the users of an aclfile would take more memory than there is for users.
var ErrNoRoom = errors.New("the users of the aclfile take more memory than there is for users")

// LoadFile replaces all users by those of an aclfile. If the file has mistakes, nothing
// changes and the error names all of them. grows reports whether users may take a number of bytes
// more than now; nil: any number. LoadFile does not read a file that is larger than that. Errors: ErrNoRoom.
func (a *Accounts) LoadFile(path string, grows func(bytes int64) bool) (Change, error) {
	text, err := a.readFile(path, grows)
	if err != nil {
		return Change{}, err
	}
	users, mistakes := ParseFile(path, text, a.Rules())
	if mistakes != "" {
		return Change{}, errors.New(mistakes)
	}
	n := -a.size()
	for _, u := range users {
		n += u.Bytes()
	}
	if grows != nil && !grows(n) {
		return Change{}, ErrNoRoom
	}
	return a.Replace(users), nil
}

// readFile reads an aclfile.
func (a *Accounts) readFile(path string, grows func(bytes int64) bool) (string, error) {
	unread := func(err error) error {
		return fmt.Errorf("Error loading ACLs, opening file '%s': %s", path, systemError(err))
	}
	if grows != nil {
		info, err := os.Stat(path)
		if err != nil {
			return "", unread(err)
		}
		if !grows(info.Size() - a.size()) {
			return "", ErrNoRoom
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", unread(err)
	}
	return string(text), nil
}

// systemError returns the text of C's strerror for an error about a file.
func systemError(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}

// SaveFile writes the users to an aclfile. It replaces the whole file, or does not change
// it after an error.
func (a *Accounts) SaveFile(path string) error {
	return config.ReplaceFile(path, strings.Join(a.Lines(a.List()), "\n")+"\n")
}
