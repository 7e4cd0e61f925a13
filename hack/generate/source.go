// SPDX-FileCopyrightText: The kubestandup authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
)

const modulePath = "github.com/kubestandup/kubestandup/"

// source reads what reflection does not know, comments and constants, out of
// the packages of this repository. Of other packages it knows nothing.
type source struct {
	root     string
	packages map[string][]*ast.File
}

func newSource(root string) *source {
	return &source{root: root, packages: map[string][]*ast.File{}}
}

// docs are the comments of a struct and of its fields, by their Go names.
type docs struct {
	text   string
	fields map[string]string
}

func (s *source) docs(t reflect.Type) (docs, error) {
	d := docs{fields: map[string]string{}}
	err := s.specs(t, func(decl *ast.GenDecl, spec ast.Spec) error {
		declared, ok := spec.(*ast.TypeSpec)
		if !ok || declared.Name.Name != t.Name() {
			return nil
		}
		d.text = sentence(declared.Doc)
		if d.text == "" {
			d.text = sentence(decl.Doc)
		}
		if structure, ok := declared.Type.(*ast.StructType); ok {
			for _, field := range structure.Fields.List {
				for _, name := range field.Names {
					d.fields[name.Name] = sentence(field.Doc)
				}
			}
		}
		return nil
	})
	return d, err
}

// constants are the values of a string type's constants, as they are written.
func (s *source) constants(t reflect.Type) ([]string, error) {
	var values []string
	err := s.specs(t, func(_ *ast.GenDecl, spec ast.Spec) error {
		declared, ok := spec.(*ast.ValueSpec)
		if !ok {
			return nil
		}
		if name, ok := declared.Type.(*ast.Ident); !ok || name.Name != t.Name() {
			return nil
		}
		for _, value := range declared.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return fmt.Errorf("a constant of %s is no plain string", t)
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				return err
			}
			values = append(values, text)
		}
		return nil
	})
	return values, err
}

// specs visits every declaration of the package that declares t.
func (s *source) specs(t reflect.Type, visit func(*ast.GenDecl, ast.Spec) error) error {
	files, err := s.files(t.PkgPath())
	if err != nil {
		return err
	}
	for _, file := range files {
		for _, decl := range file.Decls {
			general, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range general.Specs {
				if err := visit(general, spec); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *source) files(pkg string) ([]*ast.File, error) {
	dir, ours := strings.CutPrefix(pkg, modulePath)
	if !ours {
		return nil, nil
	}
	if files, known := s.packages[pkg]; known {
		return files, nil
	}
	entries, err := os.ReadDir(filepath.Join(s.root, dir))
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(s.root, dir, entry.Name()), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	s.packages[pkg] = files
	return files, nil
}

// sentence is a comment on one line.
func sentence(comment *ast.CommentGroup) string {
	return strings.Join(strings.Fields(comment.Text()), " ")
}
